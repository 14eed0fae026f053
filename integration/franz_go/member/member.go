// A member of a consumer group by franz-go; tests/support/clients/group_member.py describes the protocol.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollTime = 100 * time.Millisecond
	most     = 100 // records of one poll, which a crash may repeat
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

type journal struct {
	lock sync.Mutex // callbacks come from another goroutine
	file *os.File
}

func (j *journal) write(line string) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if _, err := j.file.WriteString(line); err != nil {
		panic(err)
	}
}

func (j *journal) recorder(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
		var shown []string
		for _, partitions := range moved {
			sort.Slice(partitions, func(a, b int) bool { return partitions[a] < partitions[b] })
			for _, partition := range partitions {
				shown = append(shown, fmt.Sprint(partition))
			}
		}
		j.write(what + " " + strings.Join(shown, ",") + "\n")
	}
}

type member struct {
	options []kgo.Opt
	client  *kgo.Client
	journal *journal
	work    time.Duration
	refused bool // whether the last commit was
}

func (m *member) join() {
	client, err := kgo.NewClient(m.options...)
	if err != nil {
		panic(err)
	}
	m.client = client
}

func (m *member) leave() {
	if m.client != nil {
		m.client.CloseAllowingRebalance()
		m.client = nil
		m.refused = false
	}
}

// turn polls, writes down what came, and only then commits it. Rebalances wait meanwhile.
func (m *member) turn() {
	waiting, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	records := m.client.PollRecords(waiting, most).Records()
	defer m.client.AllowRebalance()
	if len(records) > 0 {
		var lines strings.Builder
		for _, one := range records {
			fmt.Fprintf(&lines, "read %d %d %s\n", one.Partition, one.Offset, one.Value)
		}
		m.journal.write(lines.String())
		time.Sleep(m.work)
	} else if !m.refused {
		return
	}
	err := m.client.CommitUncommittedOffsets(context.Background())
	m.refused = err != nil
	if err != nil {
		m.journal.write(fmt.Sprintf("refused %v\n", err))
	}
}

func commands() <-chan byte {
	given := make(chan byte)
	go func() {
		defer close(given)
		one := make([]byte, 1)
		for {
			if count, err := os.Stdin.Read(one); err != nil || count == 0 {
				return
			}
			given <- one[0]
		}
	}()
	return given
}

func run(m *member, stall time.Duration) {
	given := commands()
	m.join()
	defer m.leave()
	for {
		var command byte
		open := true
		if m.client == nil {
			command, open = <-given
		} else {
			select {
			case command, open = <-given:
			default:
			}
		}
		switch {
		case !open:
			return
		case command == 'l':
			m.leave()
		case command == 'j':
			m.join()
		case command == 's':
			time.Sleep(stall)
		case m.client != nil:
			m.turn()
		}
	}
}

func main() {
	text := map[string]*string{}
	for _, name := range []string{
		"client", "bootstrap", "topic", "group", "journal", "strategy", "instance",
	} {
		text[name] = flag.String(name, "", "")
	}
	session := flag.Int("session-ms", 0, "")
	maxPoll := flag.Int("max-poll-ms", 0, "")
	work := flag.Int("work-ms", 0, "")
	flag.Parse()
	file, err := os.Create(*text["journal"])
	if err != nil {
		panic(err)
	}
	log := &journal{file: file}
	sessionTime := time.Duration(*session) * time.Millisecond
	maxPollTime := time.Duration(*maxPoll) * time.Millisecond
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(*text["bootstrap"], ",")...),
		kgo.ConsumerGroup(*text["group"]),
		kgo.ConsumeTopics(*text["topic"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancers[*text["strategy"]]),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(sessionTime),
		kgo.HeartbeatInterval(min(500*time.Millisecond, sessionTime/4)),
		kgo.RebalanceTimeout(maxPollTime),
		kgo.OnPartitionsAssigned(log.recorder("assigned")),
		kgo.OnPartitionsRevoked(log.recorder("revoked")),
		kgo.OnPartitionsLost(log.recorder("lost")),
	}
	if *text["instance"] != "" {
		options = append(options, kgo.InstanceID(*text["instance"]))
	}
	m := &member{options: options, journal: log, work: time.Duration(*work) * time.Millisecond}
	run(m, maxPollTime+2*pollTime)
}
