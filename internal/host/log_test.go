package host_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narad"
)

// logging are the options of a host that keeps headless logs.
func logging() host.Options {
	return host.Options{Numbers: numbers.Of, LogMapping: harness.Mapping}
}

func (s *stage) signer() *harness.Signer {
	return harness.NewSigner([32]byte(s.journal.Identity().Key), s.journal.Identity().Epoch)
}

func (s *stage) openLog(run string) *host.RunLog {
	s.t.Helper()
	l, err := s.host.Log(s.t.Context(), access.Owner(), access.ReadLog, run)
	if err != nil {
		s.t.Fatalf("open the log of %s: %v", run, err)
	}
	return l
}

// project makes the records of stored facts.
func (s *stage) project(l *host.RunLog, records []host.Record) []harness.Event {
	s.t.Helper()
	start, err := l.Start(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	run, err := harness.RunOf(start)
	if err != nil {
		s.t.Fatal(err)
	}
	signer := s.signer()
	var events []harness.Event
	for _, r := range records {
		rec, err := narad.Decode(r.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}
		list, err := run.Project(rec.(narad.Authority), r.FirstLog, int(r.LogCount), func(n uint64) harness.Cursor {
			return signer.Cursor(run.ID, n)
		})
		if err != nil {
			s.t.Fatalf("project %s: %v", r.Bytes, err)
		}
		events = append(events, list...)
	}
	return events
}

// log is the whole log of a run.
func (s *stage) log(run string) []harness.Event {
	s.t.Helper()
	l := s.openLog(run)
	chunk, err := l.Read(s.t.Context(), 0, host.Page{})
	if err != nil || chunk.More {
		s.t.Fatalf("read the log of %s: %v, more %v", run, err, chunk.More)
	}
	return s.project(l, chunk.Records)
}

func types(events []harness.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Type))
	}
	return strings.Join(list, " ")
}

// R35, R36: the log of a run, from its start to the checkpoint.
func TestLogOfARun(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "write it").RunID
		pass(1)
		s.resolve(s.inbox()[0].InterruptID, "approve")
		pass(1)
		got := types(s.log(run))
		want := "run.started message.completed tool.started approval.requested approval.resolved tool.completed run.completed checkpoint"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for i, e := range s.log(run) {
			if e.Sequence != uint64(i)+1 {
				t.Errorf("record %d has sequence %d", i+1, e.Sequence)
			}
		}
	})
}
