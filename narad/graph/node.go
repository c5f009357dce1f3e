package graph

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// NodeKind says what a node is.
type NodeKind string

// The kinds of nodes. A run tree has runs, tools and interrupts; a workflow has
// itself, its nodes, its top-level runs and interrupts.
const (
	KindRun       NodeKind = "run"
	KindTool      NodeKind = "tool"
	KindInterrupt NodeKind = "interrupt"
	KindWorkflow  NodeKind = "workflow"
	KindNode      NodeKind = "node"
)

// The statuses of nodes. A run and a workflow have the words of their states, a tool
// call is running and then has the word of its outcome.
const (
	StatusRunning   = "running"
	StatusPaused    = "paused"
	StatusFinished  = "finished"
	StatusError     = "error"
	StatusCancelled = "cancelled"
	StatusSuccess   = "success"  // of a tool call
	StatusOpen      = "open"     // of an interrupt that waits for a decision
	StatusResolved  = "resolved" // of an interrupt that was decided or has expired
	StatusPending   = "pending"  // of a workflow's node that no step has begun at
	StatusFailed    = "failed"   // of a workflow's node
)

// Node is one node, as it stands in records. Its fields are in the order of the
// canonical form.
type Node struct {
	// Attempt counts the attempts of a workflow's node, where the facts tell.
	Attempt int64 `json:"attempt,omitzero"`
	// Code says why a run or a tool call ended, where its fact does.
	Code string `json:"code,omitzero"`
	// Decision is that of a resolved interrupt.
	Decision string `json:"decision,omitzero"`
	// Executor is who performs a tool call.
	Executor narad.Executor `json:"executor,omitzero"`
	// ID is the kind, a colon, and the id of what the node shows.
	ID   string   `json:"id"`
	Kind NodeKind `json:"kind"`
	// Label is a short text for people.
	Label string `json:"label"`
	// Sequence is the place of the node's first fact in the run tree or workflow.
	Sequence int64  `json:"sequence"`
	Status   string `json:"status"`
	// StopRequested says that somebody asked to stop it.
	StopRequested bool `json:"stopRequested,omitzero"`
}

// Subject returns the id of what the node shows: a run, a tool call, an interrupt.
func (n Node) Subject() string {
	_, id, _ := strings.Cut(n.ID, ":")
	return id
}

func nodeID(kind NodeKind, subject string) string { return string(kind) + ":" + subject }

// EdgeKind says what an edge means.
type EdgeKind string

// The kinds of edges.
const (
	EdgeStarted EdgeKind = "started" // what a run came from: a run, a tool call, a workflow's node
	EdgeCalled  EdgeKind = "called"  // a tool call, from its run and from the call around it
	EdgeAsked   EdgeKind = "asked"   // an interrupt, from what asked
	EdgeEntered EdgeKind = "entered" // a workflow's node, where no edge led to it
	EdgeTaken   EdgeKind = "taken"   // a path between two nodes of a workflow
)

// Edge joins two nodes by their ids. Its fields are in the order of the canonical
// form.
type Edge struct {
	From string   `json:"from"`
	Kind EdgeKind `json:"kind"`
	To   string   `json:"to"`
}

// canonical renders a node or an edge. The order of fields, and that a string and a
// whole number below 2^53 have one form, make it the form of RFC 8785.
func canonical(v any) narad.Raw {
	data, err := json.Marshal(v)
	if err != nil {
		panic("graph: a node or an edge is always JSON: " + err.Error())
	}
	return data
}

// maxText bounds a text of a node. A graph is a picture: the whole is in the facts.
const maxText = 256

// short returns text, cut where it is too long and never inside a character.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
