package conformance

import _ "embed"

// Agent is a script for Mahati's scripted agent (docs/script.md) that does what the
// checks ask of an agent.
//
//go:embed agent.yaml
var Agent string

// What the checks say to the agent. An agent looks for these words in the prompt.
const (
	promptSpeak  = "conformance: speak"
	promptWork   = "conformance: work"
	promptAsk    = "conformance: ask"
	promptExpire = "conformance: expire"
	promptWait   = "conformance: wait"
	promptCall   = "conformance: call"
)

// What the agent says to promptSpeak, and the tool that it calls at promptCall.
const (
	spokenText = "The harbour is open. ⚓ It is 5 °C; \"mind the gap\" \\ and the tab\tthere."
	calledTool = "conformance.echo"
)
