package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// View is one of the contract's three ways to show a reduced log.
type View string

// The views.
const (
	ViewCLI  View = "cli"
	ViewTUI  View = "tui"
	ViewJSON View = "json"
)

// WriteView writes a view, byte for byte as the public implementation does: it shows run,
// status, messages, tools and usage, and as JSON the blocks, plan, approvals, artifacts and
// errors too. Escape, where it is not nil, is what every text of the log goes through in
// the views that are no JSON: the views themselves change nothing, so control characters
// would reach a terminal. An unknown view is an error of the class CodeInput.
func (r *Reducer) WriteView(w io.Writer, view View, escape func(string) string) error {
	switch view {
	case ViewJSON:
		return r.writeJSON(w)
	case ViewCLI:
		return r.writeText(w, escape, &textForm{"run %s %s\n", "message %s: %s\n", "tool %s %s %s\n", "usage %d/%d\n"})
	case ViewTUI:
		return r.writeText(w, escape, &textForm{"[RUN] %s | %s\n", "[MESSAGE %s] %s\n", "[TOOL %s] %s (%s)\n", "[TOKENS] in=%d out=%d\n"})
	}
	return badInput("", "", "a view is cli, tui or json")
}

// textForm is how the lines of a view for people look.
type textForm struct{ run, message, tool, usage string }

func (r *Reducer) writeText(w io.Writer, escape func(string) string, form *textForm) error {
	if escape == nil {
		escape = func(text string) string { return text }
	}
	out := bufio.NewWriter(w) // it keeps the first error for Flush
	fmt.Fprintf(out, form.run, escape(r.order.run), escape(r.status))
	for _, id := range r.messages.sorted() {
		fmt.Fprintf(out, form.message, escape(id), escape(string(r.messages.at(id).text)))
	}
	for _, id := range r.tools.sorted() {
		tool := r.tools.at(id).Tool
		fmt.Fprintf(out, form.tool, escape(id), escape(tool.Name), escape(tool.Status))
	}
	fmt.Fprintf(out, form.usage, r.usage.InputTokens, r.usage.OutputTokens)
	return out.Flush()
}

// jsonView is the view for programs: its field names, their order and what is left out are
// the public implementation's.
type jsonView struct {
	RunID     string              `json:"run_id"`
	Cursor    uint64              `json:"cursor"`
	Status    string              `json:"status,omitzero"`
	Messages  map[string]string   `json:"messages,omitempty"`
	UI        []Block             `json:"ui,omitempty"`
	Tools     map[string]Tool     `json:"tools,omitempty"`
	Plan      []Step              `json:"plan,omitempty"`
	Approvals map[string]Approval `json:"approvals,omitempty"`
	Artifacts []Artifact          `json:"artifacts,omitempty"`
	Errors    []Failure           `json:"errors,omitempty"`
	Usage     Usage               `json:"usage"`
}

func (r *Reducer) writeJSON(w io.Writer) error {
	view := jsonView{
		RunID: r.order.run, Cursor: r.order.last, Status: r.status, UI: r.blocks, Plan: r.plan, Artifacts: r.artifacts, Errors: r.failures,
		Usage: r.usage, Messages: map[string]string{}, Tools: map[string]Tool{}, Approvals: map[string]Approval{},
	}
	for id, m := range r.messages.byID {
		view.Messages[id] = string(m.text)
	}
	for id, t := range r.tools.byID {
		view.Tools[id] = t.Tool
	}
	for id, a := range r.approvals.byID {
		view.Approvals[id] = a.Approval
	}
	return json.NewEncoder(w).Encode(view) // encoding/json, for its escapes
}
