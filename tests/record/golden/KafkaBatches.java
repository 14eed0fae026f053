import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Builds and reads record batches with Apache Kafka's own classes, a line at a time.
 *
 * <p>{@code B codec transactional producerId epoch sequence} begins a batch, {@code R timestamp key
 * value [name=value ...]} adds a record (bytes as x and hex, {@code -} for null), {@code E} prints the
 * batch in hex. {@code D hex} reads a batch and prints its records as {@code R} lines and {@code E}.
 */
public class KafkaBatches {
    private static final HexFormat HEX = HexFormat.of();

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text.substring(1));
    }

    private static String text(ByteBuffer data) {
        if (data == null) {
            return "-";
        }
        byte[] copy = new byte[data.remaining()];
        data.duplicate().get(copy);
        return "x" + HEX.formatHex(copy);
    }

    private static MemoryRecordsBuilder begin(String[] words) {
        return MemoryRecords.builder(
            ByteBuffer.allocate(1 << 20), Compression.of(words[1]).build(),
            0L, Long.parseLong(words[3]), Short.parseShort(words[4]),
            Integer.parseInt(words[5]), Boolean.parseBoolean(words[2]));
    }

    private static void append(MemoryRecordsBuilder builder, String[] words) {
        List<Header> headers = new ArrayList<>();
        for (int i = 4; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            headers.add(new RecordHeader(new String(bytes(pair[0])), bytes(pair[1])));
        }
        builder.append(
            Long.parseLong(words[1]), bytes(words[2]), bytes(words[3]),
            headers.toArray(new Header[0]));
    }

    private static void dump(String hex) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                StringBuilder line = new StringBuilder("R " + record.timestamp());
                line.append(' ').append(text(record.key())).append(' ').append(text(record.value()));
                for (Header header : record.headers()) {
                    byte[] value = header.value();
                    line.append(" x").append(HEX.formatHex(header.key().getBytes())).append('=');
                    line.append(value == null ? "-" : "x" + HEX.formatHex(value));
                }
                System.out.println(line);
            }
        }
        System.out.println("E");
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        MemoryRecordsBuilder builder = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "B" -> builder = begin(words);
                case "R" -> append(builder, words);
                case "E" -> System.out.println(text(builder.build().buffer()).substring(1));
                case "D" -> dump(words[1]);
                default -> throw new IllegalArgumentException(line);
            }
        }
    }
}
