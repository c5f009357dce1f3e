package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Source is what Everything reads.
type Source interface {
	journal.Reader
	journal.Index
	Durable() journal.Mark
}

// Everything asks every question of the reading ports about the names in
// probes and writes down all answers, errors too, page by page. Two sources
// that hold the same give the same text.
func Everything(source Source, probes *Probes) string {
	return everything(source, probes, journal.Page{Limit: 3, Bytes: 4_000})
}

func everything(source Source, probes *Probes, page journal.Page) string {
	e := &examiner{source: source, page: page}
	mark := source.Durable()
	e.line("durable offset %d event %d", mark.Offset, mark.Event)
	for _, session := range probes.sessions.order {
		e.session(session)
	}
	spans := slices.Clone(probes.spans.order)
	slices.SortFunc(spans, func(a, b span) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, s := range spans {
		e.span(s)
	}
	for _, event := range probes.events.order {
		record, err := source.Find(context.Background(), event.session, event.id)
		e.answer(fmt.Sprintf("find %s %s", event.session, event.id), describe(record), err)
	}
	e.walk("by offset", func(after uint64) journal.Order { return journal.ByOffset{After: after} },
		func(r journal.Record) uint64 { return r.Offset })
	e.walk("by event", func(after uint64) journal.Order { return journal.ByEvent{After: after} },
		func(r journal.Record) uint64 { return r.FirstEvent + uint64(r.EventCount) - 1 })
	for _, key := range probes.keys.order {
		row, err := source.Row(context.Background(), key)
		e.answer("row "+key.String(), fmt.Sprintf("%+v", row), err)
	}
	e.lists(probes)
	return e.text.String()
}

type examiner struct {
	source Source
	page   journal.Page
	text   strings.Builder
}

func (e *examiner) line(format string, args ...any) { fmt.Fprintf(&e.text, format+"\n", args...) }

func (e *examiner) answer(question, answer string, err error) {
	if err != nil {
		answer = errorName(err)
	}
	e.line("%s: %s", question, answer)
}

func (e *examiner) session(session string) {
	head, err := e.source.Head(context.Background(), session)
	e.answer("head "+session, fmt.Sprintf("%d offset %d at %s", head.Sequence, head.Offset, head.Time.Format(time.RFC3339Nano)), err)
	e.walk("session "+session,
		func(after uint64) journal.Order { return journal.BySession{Session: session, After: after} },
		func(r journal.Record) uint64 { return r.Sequence })
}

func (e *examiner) span(s span) {
	question := fmt.Sprintf("%s %s of %s", s.kind, s.id, s.session)
	switch s.kind {
	case "run":
		e.walk(question,
			func(after uint64) journal.Order {
				return journal.ByRun{Session: s.session, RootRunID: s.id, After: after}
			},
			func(r journal.Record) uint64 { return r.RunSequence })
	case "workflow":
		e.walk(question,
			func(after uint64) journal.Order {
				return journal.ByWorkflow{Session: s.session, WorkflowID: s.id, After: after}
			},
			func(r journal.Record) uint64 { return r.WorkflowSequence })
	default:
		e.walk(question,
			func(after uint64) journal.Order {
				return journal.ByLog{Session: s.session, LogRun: s.id, After: after}
			},
			func(r journal.Record) uint64 { return r.FirstLog + uint64(r.LogCount) - 1 })
	}
}

// walk reads an order to its end in pages.
func (e *examiner) walk(question string, order func(uint64) journal.Order, position func(journal.Record) uint64) {
	for after := uint64(0); ; {
		chunk, err := e.source.Read(context.Background(), order(after), e.page)
		e.answer(fmt.Sprintf("%s after %d", question, after), fmt.Sprintf("%d records, more %t", len(chunk.Records), chunk.More), err)
		for _, record := range chunk.Records {
			e.line("  %s", describe(record))
			after = position(record)
		}
		if !chunk.More || err != nil {
			return
		}
	}
}

func (e *examiner) lists(probes *Probes) {
	lists := []journal.List{
		journal.Sessions{}, journal.Sessions{NewestFirst: true}, journal.Sessions{State: "active"},
		journal.Sessions{State: "archived", Workspace: "w1", NewestFirst: true},
		journal.OpenInterrupts{}, journal.OpenWork{}, journal.Leases{}, journal.Agents{}, journal.Materials{},
		journal.Decisions{}, journal.Decisions{Decision: "deny"}, journal.Workflows{}, journal.Workflows{State: "running"},
		journal.TimersDue{Until: Start.Add(30 * time.Second)}, journal.TimersDue{Until: Start.Add(1000 * time.Hour)},
	}
	for _, session := range probes.sessions.order {
		lists = append(lists, journal.OpenInterrupts{Session: session}, journal.Materials{Session: session, Space: "a"}, journal.Decisions{Session: session})
	}
	for _, executor := range probes.executors.order {
		lists = append(lists, journal.Tokens{Executor: executor})
	}
	for _, list := range lists {
		e.list(list)
	}
}

func (e *examiner) list(list journal.List) {
	page := journal.RowPage{Limit: e.page.Limit - 1}
	for {
		rows, err := e.source.Rows(context.Background(), list, page)
		e.answer(fmt.Sprintf("list %T %+v", list, list), fmt.Sprintf("%d rows, more %t", len(rows.Rows), rows.Next != ""), err)
		for _, row := range rows.Rows {
			e.line("  %+v", row)
		}
		if page.Cursor = rows.Next; page.Cursor == "" || err != nil {
			return
		}
	}
}

func describe(r journal.Record) string {
	return fmt.Sprintf("%s/%d offset %d id %s run %s/%d workflow %s/%d events %d+%d log %s/%d+%d at %s: %s",
		r.Session, r.Sequence, r.Offset, r.EventID, r.RootRunID, r.RunSequence, r.WorkflowID, r.WorkflowSequence,
		r.FirstEvent, r.EventCount, r.LogRun, r.FirstLog, r.LogCount, r.Time.Format(time.RFC3339Nano),
		strings.TrimRight(string(r.Bytes), " ")+fmt.Sprintf(" (%d bytes)", len(r.Bytes)))
}

// errorName gives the class of an error, which is what two sources must agree on.
func errorName(err error) string {
	for _, class := range []error{
		journal.ErrNotFound, journal.ErrDeleted, journal.ErrClosed, journal.ErrDamaged, journal.ErrInvalid,
		journal.ErrConflict, journal.ErrCondition, journal.ErrStorageFull, journal.ErrTooLarge,
		journal.ErrRefused, journal.ErrBroken,
	} {
		if errors.Is(err, class) {
			return "error: " + class.Error()
		}
	}
	return "error: " + err.Error()
}
