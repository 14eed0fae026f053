// Copies a topic in transactions by franz-go; integration/harness/transactional_copiers.py runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap := flag.String("bootstrap", "", "address of a broker")
	source := flag.String("source", "", "topic to read")
	target := flag.String("target", "", "topic to write")
	name := flag.String("id", "", "transactional id")
	group := flag.String("group", "", "group")
	most := flag.Int("records", 0, "records to copy")
	size := flag.Int("size", 100, "records of a transaction")
	deadly := flag.Int("deadly", 0, "transaction in which it dies, with its records written")
	flag.Parse()

	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(*bootstrap),
		kgo.TransactionalID(*name),
		kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(*source),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.SessionTimeout(6*time.Second),
		kgo.TransactionTimeout(6*time.Second),
	)
	check(err)
	ctx := context.Background()
	for copied, turn := 0, 1; copied < *most; turn++ {
		fetches := session.PollRecords(ctx, *size)
		if errs := fetches.Errors(); len(errs) > 0 {
			check(errs[0].Err)
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		check(session.Begin())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(ctx, &kgo.Record{
				Topic: *target, Partition: record.Partition, Value: record.Value,
			}, nil)
		})
		if turn == *deadly {
			check(session.Client().Flush(ctx))
			os.Exit(9)
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(turn%3 != 0))
		check(err)
		if committed {
			copied += fetches.NumRecords()
			fmt.Println(copied)
		}
	}
	session.Close()
}
