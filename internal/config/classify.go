package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Harness is about the logs of the headless run contract.
type Harness struct {
	// Classify says who sees what of a log; the first that matches counts.
	Classify []Classification
}

// The classes that a record of a run's log can have.
const (
	ClassPublic  = "public"
	ClassPrivate = "private"
	ClassSecret  = "secret"
)

// A Classification gives records of a run's log a class. It matches when all of its
// conditions do, and an empty condition always does.
type Classification struct {
	Tool  string // pattern for the name of the tool that a record is about
	Type  string // of the record
	Agent string // pattern for the name of the agent of the session
	Class string
}

// RecordTypes are the types of records that a classification can name: those whose payload
// has content, those that Mahati adds too. The others are always public.
func RecordTypes() []string { return slices.Clone(recordTypes) }

var recordTypes = []string{
	"approval.requested", "approval.resolved", "artifact.published", "error", "message.completed", "message.delta", "message.started",
	"plan.updated", "reasoning.completed", "reasoning.delta", "reasoning.started", "tool.completed", "tool.started", "ui.block",
}

// The bounds of what a run records of its classification.
const (
	maxClassifications = 64
	maxClassPattern    = 256
)

// harness reads the [harness] table, which has nothing but [[harness.classify]].
func (l *loader) harness(doc document, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key := join("harness", name)
		if name != "classify" {
			l.fail(doc.source(key), key, "", "there is no such setting")
			continue
		}
		l.classify(doc, key, values[name])
	}
}

func (l *loader) classify(doc document, at string, raw any) {
	entries, ok := raw.([]any)
	if !ok {
		l.fail(doc.source(at), at, show(raw), "must be written as [[harness.classify]], one for each rule")
		return
	}
	if len(entries) > maxClassifications {
		l.fail(doc.source(at), at, "", fmt.Sprintf("must be at most %d rules", maxClassifications))
		return
	}
	for i, entry := range entries {
		key := entryKey(at, i)
		values, ok := entry.(map[string]any)
		if !ok {
			l.fail(doc.source(key), key, show(entry), "must be a table")
			continue
		}
		if c, ok := l.classification(doc, key, values); ok {
			l.config.Harness.Classify = append(l.config.Harness.Classify, c)
		}
	}
}

func (l *loader) classification(doc document, prefix string, values map[string]any) (c Classification, ok bool) {
	before := len(l.errs)
	for _, field := range slices.Sorted(maps.Keys(values)) {
		key, raw := join(prefix, field), values[field]
		err := c.set(field, raw)
		switch {
		case errors.Is(err, errNoSuchKey):
			l.fail(doc.source(key), key, "", err.Error())
		case err != nil:
			l.fail(doc.source(key), key, show(raw), err.Error())
		}
	}
	if len(l.errs) == before && c.Class == "" {
		l.fail(doc.source(prefix), join(prefix, "class"), "", classRule)
	}
	return c, len(l.errs) == before
}

func (c *Classification) set(field string, raw any) error {
	text, isText := raw.(string)
	target, check := c.field(field)
	switch {
	case target == nil:
		return errNoSuchKey
	case !isText:
		return errors.New("must be a string")
	}
	*target = text
	return check(text)
}

// field returns where a field goes and what holds for it, nil for one that there is not.
func (c *Classification) field(name string) (target *string, check func(string) error) {
	switch name {
	case "tool":
		return &c.Tool, checkClassPattern
	case "agent":
		return &c.Agent, checkClassPattern
	case "type":
		return &c.Type, checkRecordType
	case "class":
		return &c.Class, checkClass
	}
	return nil, nil
}

func checkClassPattern(s string) error {
	if len(s) > maxClassPattern {
		return fmt.Errorf("must be at most %d bytes", maxClassPattern)
	}
	return checkPattern(s)
}

func checkRecordType(s string) error {
	if !slices.Contains(recordTypes, s) {
		return errors.New("must be one of " + strings.Join(recordTypes, ", "))
	}
	return nil
}

const classRule = "must be public, private or secret"

func checkClass(s string) error {
	switch s {
	case ClassPublic, ClassPrivate, ClassSecret:
		return nil
	}
	return errors.New(classRule)
}
