package pebble_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

// childVariable makes the test binary the child of the process death suite:
// its value is the child's orders in JSON.
const childVariable = "MAHATI_CRASH_CHILD"

func TestMain(m *testing.M) {
	if orders := os.Getenv(childVariable); orders != "" {
		child(orders)
	}
	goleak.VerifyTestMain(m)
}

const processWriters = 3

// orders tell a child what to do.
type orders struct {
	Dir  string
	Seed uint64
	// Outcomes are what earlier lives heard of each writer's batches, so that
	// the generators can be brought to where they were.
	Outcomes [processWriters][]bool
	// DieAt and Arrival name a point: the child kills itself when it comes to
	// the stage for that time. Arrival 0 means that the parent kills it.
	DieAt   journal.Stage
	Arrival int
}

// processGenerator is the generator of one writer, after what it has heard.
func processGenerator(seed uint64, writer int, outcomes []bool) *journaltest.Generator {
	g := journaltest.NewGenerator(seed+uint64(writer), fmt.Sprintf("p%d", writer))
	for _, accepted := range outcomes {
		g.Done(g.FactBatch(), accepted)
	}
	return g
}

// child appends until it is killed and tells each outcome on its standard
// output: the writer, and whether its next batch was accepted.
func child(text string) {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	arrivals := 0
	j, err := pebble.Open(o.Dir, pebble.Options{MemTable: 64 << 10, Options: journal.Options{
		Reserve: 1 << 20,
		Fault: func(stage journal.Stage, _ journal.Group) error {
			if stage == o.DieAt {
				if arrivals++; arrivals == o.Arrival {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
			}
			return nil
		},
	}})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(3)
	}
	fmt.Println("open")
	var writers sync.WaitGroup
	for i := range processWriters {
		writers.Go(func() { childWriter(j, processGenerator(o.Seed, i, o.Outcomes[i]), i) })
	}
	writers.Wait()
	if err := j.Close(); err != nil {
		fmt.Println("close:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func childWriter(j *pebble.Journal, g *journaltest.Generator, i int) {
	for range 100 {
		batch := g.FactBatch()
		_, err := j.Append(context.Background(), batch)
		if err != nil && !errors.Is(err, journal.ErrCondition) && !errors.Is(err, journal.ErrInvalid) {
			fmt.Println("append:", err)
			os.Exit(3)
		}
		g.Done(batch, err == nil)
		// One write a line: the pipe keeps it whole.
		_, _ = os.Stdout.WriteString(fmt.Sprintf("%d %t\n", i, err == nil))
	}
}

// TestProcessDeath kills a process that appends, at random times and at every
// stage of a commit, several times on one store, and looks at what is left.
func TestProcessDeath(t *testing.T) {
	rounds := fromEnvironment(t, killsVariable, defaultKills)
	seed := fromEnvironment(t, seedVariable, uint64(time.Now().UnixNano()))
	t.Logf("%d rounds from seed %d", rounds, seed)
	var killed atomic.Int64
	for round := range rounds {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed+round, 0x6b696c6c))
			o := orders{Dir: t.TempDir(), Seed: seed + round}
			for life := range 2 {
				if life == int(round)%2 {
					o.DieAt, o.Arrival = journal.Stages[random.IntN(len(journal.Stages))], 1+random.IntN(40)
				} else {
					o.Arrival = 0
				}
				if live(t, &o, random.IntN(200)) {
					killed.Add(1)
				}
			}
		})
	}
	if killed.Load() == 0 {
		t.Error("no process was killed")
	}
}

// live runs a child until it dies, by its own hand or after so many lines, and
// checks the store. It adds to the outcomes and reports whether the child was
// killed.
func live(t *testing.T, o *orders, lines int) bool {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), childVariable+"="+string(text))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(output)
	for n := 0; scanner.Scan(); n++ {
		if o.Arrival == 0 && n == lines {
			_ = command.Process.Kill()
		}
		hear(t, o, scanner.Text())
	}
	err = command.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		t.Fatalf("child: %v, want it killed or done", err)
	}
	check(t, o)
	return err != nil
}

// hear notes a line of the child.
func hear(t *testing.T, o *orders, line string) {
	t.Helper()
	if line == "open" {
		return
	}
	var writer int
	var accepted bool
	if _, err := fmt.Sscanf(line, "%d %t", &writer, &accepted); err != nil || strings.Contains(line, ":") {
		t.Fatalf("child says %q", line)
	}
	o.Outcomes[writer] = append(o.Outcomes[writer], accepted)
}

// check opens the store and compares it with what was heard. Batches in flight
// that survived become accepted, others are as if refused.
func check(t *testing.T, o *orders) {
	t.Helper()
	j, err := pebble.Open(o.Dir, pebble.Options{MemTable: 64 << 10, Options: journal.Options{Reserve: 1 << 20}})
	if err != nil {
		t.Fatalf("open after the death: %v", err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	histories := make([]journaltest.History, processWriters)
	for i := range histories {
		g := processGenerator(o.Seed, i, nil)
		for _, accepted := range o.Outcomes[i] {
			batch := g.FactBatch()
			if accepted {
				histories[i].Acknowledged = append(histories[i].Acknowledged, batch)
			}
			g.Done(batch, accepted)
		}
		histories[i].InFlight = []journal.Batch{g.FactBatch()}
	}
	survived, err := journaltest.CheckSurvivors(j, histories)
	if err != nil {
		t.Fatalf("%s=%d, died at %v arrival %d: %v", seedVariable, o.Seed, o.DieAt, o.Arrival, err)
	}
	for i, n := range survived {
		o.Outcomes[i] = append(o.Outcomes[i], n > 0)
	}
}
