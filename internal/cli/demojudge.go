package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// judge checks what the demo has shown, and says so in one last line.
func (d *demo) judge(ctx context.Context) error {
	export, err := exported(ctx, d.client, d.session)
	if err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	if err := sameFacts(d.seen, export); err != nil {
		return fmt.Errorf("what the client saw: %w", err)
	}
	if err := checkTrace(export); err != nil {
		return fmt.Errorf("the exported session: %w", err)
	}
	ran, err := toolsRan(d.work(), export)
	if err != nil {
		return fmt.Errorf("the tools: %w", err)
	}
	if err := nothingRuns(d.work()); err != nil {
		return err
	}
	if err := d.verify(ctx); err != nil {
		return err
	}
	if d.ended.Type() != narad.TypeRunFinished {
		return fmt.Errorf("the run ended as %s", d.ended.Type())
	}
	d.say("checked: %d facts, seen once each over a disconnect and a kill -9, equal to the export byte for byte; "+
		"narad check ok; store verified; %s ran exactly once; the approval outlived the kill; no process left.",
		len(export), count(ran, "tool"))
	return nil
}

// exported returns the facts of a session as "mahati export" writes them.
func exported(ctx context.Context, c *client.Client, session string) ([]narad.Raw, error) {
	var facts []narad.Raw
	for fact, err := range c.Events(ctx, session, client.HistoryQuery{}) {
		if err != nil {
			return nil, fmt.Errorf("export the session: %w", err)
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// sameFacts compares facts that were shown with those that are kept. Where the kept ones
// number 1, 2, 3 (which narad check demands) no hole and no repeat is left.
func sameFacts(shown, kept []narad.Raw) error {
	for i := range min(len(shown), len(kept)) {
		if !bytes.Equal(shown[i], kept[i]) {
			return fmt.Errorf("fact %d is not what is kept", i+1)
		}
	}
	if len(shown) != len(kept) {
		return fmt.Errorf("%d facts were shown, %d are kept", len(shown), len(kept))
	}
	return nil
}

// checkTrace is narad check.
func checkTrace(facts []narad.Raw) error {
	j := newJudge(false, 0)
	for _, fact := range facts {
		if r := j.take(fact); r.Refused() {
			return fmt.Errorf("line %d: %s %s", j.lines, r.Code, r.Detail)
		}
	}
	return nil
}

// toolLog is the file into which each tool of the demo writes when it runs.
const toolLog = "tools.log"

// toolRuns reads which tools have run, and in which process.
func toolRuns(work string) (names []string, pids []int, err error) {
	text, err := os.ReadFile(filepath.Join(work, toolLog))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", toolLog, err)
		}
		names, pids = append(names, name), append(pids, pid)
	}
	return names, pids, nil
}

// toolsRan compares the facts about tools with what the tools themselves wrote: one that
// succeeded ran once, any other at most once, and none without a fact.
func toolsRan(work string, facts []narad.Raw) (int, error) {
	names, _, err := toolRuns(work)
	if err != nil {
		return 0, err
	}
	ran := map[string]int{}
	for _, name := range names {
		ran[name]++
	}
	called := map[string]string{} // tool call -> tool
	for _, fact := range facts {
		record, err := narad.Decode(fact)
		if err != nil {
			return 0, err
		}
		switch f := record.(type) {
		case *narad.ToolCallStarted:
			called[f.ToolCallID] = f.ToolName
		case *narad.ToolCallFinished:
			name := called[f.ToolCallID]
			if name != nestedTool && f.Outcome == narad.OutcomeSuccess && ran[name] != 1 {
				return 0, fmt.Errorf("%s succeeded and ran %d times", name, ran[name])
			}
		}
	}
	for name, times := range ran {
		if times > 1 {
			return 0, fmt.Errorf("%s ran %d times", name, times)
		}
	}
	return len(ran), nil
}

// nestedTool starts a nested agent; it runs no command.
const nestedTool = "task"

// nothingRuns waits until no process group of a tool is left.
func nothingRuns(work string) error {
	_, pids, err := toolRuns(work)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process group %d of a tool is left", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// verify is mahati verify.
func (s *stage) verify(ctx context.Context) error {
	cfg, err := config.Load(s.home, os.Getenv)
	if err != nil {
		return err
	}
	report, err := daemon.Verify(ctx, cfg, nil)
	if err != nil {
		return fmt.Errorf("verify the store: %w", err)
	}
	if !report.OK() {
		return fmt.Errorf("verify the store: %s, the first: %s", count(report.ProblemCount, "problem"), report.Problems[0].Detail)
	}
	return nil
}
