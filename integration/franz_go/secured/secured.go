// A client of secured listeners by franz-go; integration/harness/secured_clients.py runs it.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const patience = 20 * time.Second

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tlsConfig(authorities, store string) *tls.Config {
	text, err := os.ReadFile(authorities)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	config := &tls.Config{RootCAs: trusted}
	if store != "" {
		own, err := tls.LoadX509KeyPair(store, store)
		check(err)
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

func login(mechanism, user, secret string) kgo.Opt {
	asScram := scram.Auth{User: user, Pass: secret}
	switch mechanism {
	case "OAUTHBEARER":
		return kgo.SASL(oauth.Auth{Token: secret}.AsMechanism())
	case "SCRAM-SHA-256":
		return kgo.SASL(asScram.AsSha256Mechanism())
	case "SCRAM-SHA-512":
		return kgo.SASL(asScram.AsSha512Mechanism())
	}
	return kgo.SASL(plain.Auth{User: user, Pass: secret}.AsMechanism())
}

func connect(options []kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	check(err)
	return client
}

func produce(client *kgo.Client, topic, value string) {
	record := &kgo.Record{Topic: topic, Value: []byte(value)}
	check(client.ProduceSync(context.Background(), record).FirstErr())
}

// consume prints the values of the topic, until `enough` returns true for their number.
func consume(client *kgo.Client, prefix string, enough func(int) bool) {
	count := 0
	for ends := time.Now().Add(patience); !enough(count); {
		if time.Now().After(ends) {
			check(fmt.Errorf("timeout after %d records", count))
		}
		waiting, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetches := client.PollFetches(waiting)
		cancel()
		for _, failed := range fetches.Errors() {
			if failed.Err != context.DeadlineExceeded {
				check(failed.Err)
			}
		}
		fetches.EachRecord(func(one *kgo.Record) {
			fmt.Println(prefix + string(one.Value))
			count++
		})
	}
	check(client.CommitUncommittedOffsets(context.Background()))
	client.Close()
}

// renew writes and reads at the same time, longer than a session lasts.
func renew(writer, reader *kgo.Client, topic string, duration time.Duration) {
	total := make(chan int, 1)
	go func() {
		sent := 0
		for ends := time.Now().Add(duration); time.Now().Before(ends); sent++ {
			produce(writer, topic, strconv.Itoa(sent))
			time.Sleep(5 * time.Millisecond)
		}
		total <- sent
	}()
	expected := -1
	consume(reader, "read ", func(count int) bool {
		select {
		case expected = <-total:
		default:
		}
		return expected >= 0 && count >= expected
	})
	fmt.Println("sent", expected)
}

func main() {
	text := map[string]*string{}
	for _, name := range []string{
		"mode", "bootstrap", "ca", "store", "mechanism", "user", "topic", "group",
	} {
		text[name] = flag.String(name, "", "")
	}
	count := flag.Int("count", 0, "records to read, or seconds of the mode renew")
	flag.Parse()
	options := []kgo.Opt{
		kgo.SeedBrokers(*text["bootstrap"]),
		kgo.RecordDeliveryTimeout(patience),
		kgo.ProducerLinger(0),
	}
	if *text["ca"] != "" {
		options = append(options, kgo.DialTLSConfig(tlsConfig(*text["ca"], *text["store"])))
	}
	if *text["mechanism"] != "" {
		secret := os.Getenv("KAFKA_SECRET")
		options = append(options, login(*text["mechanism"], *text["user"], secret))
	}
	member := append([]kgo.Opt{
		kgo.ConsumerGroup(*text["group"]),
		kgo.ConsumeTopics(*text["topic"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	}, options...)
	client := connect(options)
	check(client.Ping(context.Background()))
	switch *text["mode"] {
	case "produce":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			produce(client, *text["topic"], lines.Text())
		}
	case "consume":
		consume(connect(member), "", func(read int) bool { return read >= *count })
	case "renew":
		renew(client, connect(member), *text["topic"], time.Duration(*count)*time.Second)
	}
	client.Close()
}
