package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// section measures one subject.
type section struct {
	name    string
	stored  bool // it needs the seeded store and the processes around it
	measure func(*bench) ([]line, error)
}

// sections are in the order of the report. The one that kills the host is the last.
var sections = []section{
	{"kernel", false, measureKernel},
	{"hydrate", false, measureHydrate},
	{"runlog", false, measureRunLog},
	{"idle", true, measureIdle},
	{"reach", true, measureReach},
	{"history", true, measureHistory},
	{"fanout", true, measureFanOut},
	{"firehose", true, measureFirehose},
	{"stalled", true, measureStalled},
	{"handover", true, measureHandover},
	{"executor", true, measureExecutor},
	{"parallel", true, measureParallel},
	{"start", true, measureStart},
}

func main() {
	if code, played := playRole(); played {
		os.Exit(code)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	b := &bench{}
	var only string
	flag.DurationVar(&b.time, "time", 20*time.Second, "how long each figure is measured")
	flag.StringVar(&only, "only", "", "sections to run, separated by commas: "+names())
	flag.IntVar(&b.seed.sessions, "sessions", 10_000, "sessions in the store")
	flag.IntVar(&b.seed.large, "large", 1_000_000, "facts of the largest session")
	flag.IntVar(&b.seed.medium, "medium", 20, "further sessions of 10 MB each")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	b.ctx = ctx

	chosen, err := choose(only)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "mahati-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	b.home = home
	fmt.Printf("%s, %d processors, %s, load %s\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.RFC3339), load())
	lines, err := b.run(chosen)
	if len(lines) > 0 {
		fmt.Println()
		err = errors.Join(err, writeTable(os.Stdout, lines))
	}
	fmt.Printf("load %s\n", load())
	return err
}

// load is what the machine does besides.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

func names() string {
	var list []string
	for _, s := range sections {
		list = append(list, s.name)
	}
	return strings.Join(list, ",")
}

func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	var chosen []section
	for _, s := range sections {
		if strings.Contains(","+only+",", ","+s.name+",") {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) != len(strings.Split(only, ",")) {
		return nil, fmt.Errorf("-only %s: the sections are %s", only, names())
	}
	return chosen, nil
}

// run runs sections. One that fails is a line, and does not keep the others.
func (b *bench) run(chosen []section) (lines []line, err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	prepared := false
	for _, s := range chosen {
		if s.stored && !prepared {
			if err := b.prepare(); err != nil {
				return lines, err
			}
			prepared = true
		}
		begun := time.Now()
		found, err := s.measure(b)
		if err != nil {
			found = append(found, notMeasured(s.name, "", err))
		}
		fmt.Printf("%-10s %s, load %s\n", s.name, time.Since(begun).Round(100*time.Millisecond), load())
		for _, l := range found {
			fmt.Printf("           %s: %s (goal %s: %s), against %s\n", l.name, l.figure, l.goal, l.verdict, l.against)
		}
		lines = append(lines, found...)
		if b.ctx.Err() != nil {
			return lines, b.ctx.Err()
		}
	}
	return lines, nil
}

// prepare makes the store and starts what the host is compared with.
func (b *bench) prepare() error {
	begun := time.Now()
	if err := configure(b.home, b.time); err != nil {
		return fmt.Errorf("configure the host: %w", err)
	}
	size, err := b.seed.sow(b.ctx, b.home)
	if err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	fmt.Printf("%-10s %s, %d sessions, %d MB of facts\n", "store", time.Since(begun).Round(100*time.Millisecond), b.seed.sessions, size>>20)
	b.plain, err = start(rolePlain)
	return err
}
