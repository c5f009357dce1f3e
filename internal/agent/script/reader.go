package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	maxFile      = 1 << 20
	maxNodes     = 100_000
	maxDepth     = 100
	maxScenarios = 1_000
	maxSteps     = 1_000 // of one list
)

// reader reads a file into a script. Its first error stands.
type reader struct {
	opt    Options
	script *script
	err    *Error
	nodes  int

	// Of the scenario being read:
	parallel  bool // the step stands in a branch, in the run itself
	spoke     bool // a step of the run itself speaks
	steerable bool
	names     map[string]bool
	used      []use
}

// use is a place where a variable of a named step is used.
type use struct {
	node *yaml.Node
	name string
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{r.opt.Name, n.Line, fmt.Sprintf(format, args...)}
	}
}

// load reads a file.
func load(file []byte, opt Options) (*script, error) {
	r := &reader{opt: opt, script: &script{scenarios: map[string]*scenario{}}}
	n := r.parse(file)
	if r.err == nil {
		r.file(n)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.script, nil
}

// parse reads the one YAML document of a file and bounds it.
func (r *reader) parse(file []byte) *yaml.Node {
	top := &yaml.Node{Line: 1}
	if len(file) > maxFile {
		r.fail(top, "the file has more than %d bytes", maxFile)
		return top
	}
	d := yaml.NewDecoder(bytes.NewReader(file))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			r.fail(top, "the file is empty")
			return top
		}
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if n, err := fmt.Sscanf(text, "line %d:", &top.Line); n == 1 && err == nil {
			_, text, _ = strings.Cut(text, ": ")
		}
		r.fail(top, "%s", text)
		return top
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		r.fail(top, "the file must be one YAML document")
		return top
	}
	r.bound(&doc, 0)
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.fail(top, "the file must be one YAML document")
		return top
	}
	return doc.Content[0]
}

// bound refuses what could make a small file a large one.
func (r *reader) bound(n *yaml.Node, depth int) {
	r.nodes++
	switch {
	case r.err != nil:
		return
	case r.nodes > maxNodes:
		r.fail(n, "the file has more than %d values", maxNodes)
	case depth > maxDepth:
		r.fail(n, "the file nests deeper than %d", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "anchors and aliases are not allowed")
	}
	for _, inner := range n.Content {
		r.bound(inner, depth+1)
	}
}

// file reads the top level: rules and scenarios, or steps alone.
func (r *reader) file(n *yaml.Node) {
	o := r.object(n, "the file")
	if version := o.take("script"); version == nil || version.Value != "1" {
		r.fail(n, "the file must say script: 1")
	}
	m := r.defaults(o)
	r.models(o)
	if steps := o.take("steps"); steps != nil {
		r.script.rules = []rule{{play: "steps"}}
		r.scenario("steps", steps, m)
		o.close("script", "defaults", "models", "steps")
		return
	}
	rules, scenarios := o.take("rules"), o.take("scenarios")
	o.close("script", "defaults", "models", "rules", "scenarios", "steps")
	if rules == nil || scenarios == nil {
		r.fail(n, "the file must have steps, or rules and scenarios")
		return
	}
	r.readScenarios(scenarios, m)
	for _, item := range r.items(rules, "rules", maxScenarios) {
		r.rule(item)
	}
}

func (r *reader) defaults(o *object) manner {
	n := o.take("defaults")
	if n == nil {
		return manner{}
	}
	d := r.object(n, "defaults")
	m := manner{chunk: d.number("chunk", maxBytes), pace: d.duration("pace")}
	d.close("chunk", "pace")
	return m
}

func (r *reader) rule(n *yaml.Node) {
	o := r.object(n, "a rule")
	rule := rule{contains: strings.ToLower(o.plain("contains")), turn: o.number("turn", 1_000_000)}
	if rule.turn > 0 {
		r.script.counts = true
	}
	if m := o.take("matches"); m != nil {
		pattern, err := regexp.Compile(r.plain(m, "matches"))
		if err != nil {
			r.fail(m, "matches: not a regular expression: %v", err)
		}
		rule.matches = pattern
	}
	rule.play = o.name("play")
	if r.script.scenarios[rule.play] == nil {
		r.fail(n, "a rule must play a scenario of the file, not %q", rule.play)
	}
	o.close("contains", "matches", "turn", "play")
	r.script.rules = append(r.script.rules, rule)
}

func (r *reader) readScenarios(n *yaml.Node, m manner) {
	o := r.object(n, "scenarios")
	if len(n.Content) > 2*maxScenarios {
		r.fail(n, "scenarios has more than %d entries", maxScenarios)
	}
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		name := o.r.name(n.Content[i], "the name of a scenario")
		r.scenario(name, n.Content[i+1], m)
	}
}

func (r *reader) scenario(name string, steps *yaml.Node, m manner) {
	r.parallel, r.spoke, r.steerable, r.names, r.used = false, false, false, map[string]bool{}, nil
	s := &scenario{}
	s.steps = r.steps(steps, m)
	s.steerable = r.steerable
	for _, u := range r.used {
		if !r.names[u.name] {
			r.fail(u.node, "no step of the scenario is named %q (as: %s)", u.name, u.name)
		}
	}
	r.script.scenarios[name] = s
}

// steps reads a list of steps.
func (r *reader) steps(n *yaml.Node, m manner) sequence {
	var s sequence
	for _, item := range r.items(n, "steps", maxSteps) {
		if r.err != nil {
			return nil
		}
		s = append(s, r.step(item, m))
	}
	return s
}

// step reads one step: a mapping with one key, its kind.
func (r *reader) step(n *yaml.Node, m manner) action {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		r.fail(n, "a step must be one key and its value, such as say: hello")
		return nil
	}
	read := stepReader(n.Content[0].Value)
	if read == nil {
		r.fail(n, "unknown step %q", n.Content[0].Value)
		return nil
	}
	return read(r, n.Content[1], m)
}

// stepReader returns what reads a step of a kind, nil for an unknown one.
func stepReader(kind string) func(*reader, *yaml.Node, manner) action {
	switch kind {
	case "say":
		return readSay
	case "think":
		return readThink
	case "tool":
		return readTool
	case "client":
		return readClient
	case "ask":
		return readAsk
	case "question":
		return readQuestion
	case "questions":
		return readQuestions
	case "agent":
		return readNested
	case "parallel":
		return readParallel
	case "repeat":
		return readRepeat
	case "if":
		return readIf
	case "delay":
		return readDelay
	case "progress":
		return readProgress
	case "plan":
		return readPlan
	case "artifact":
		return readArtifact
	case "state":
		return readState
	case "view":
		return readView
	case "raw":
		return readRaw
	case "trace":
		return readTrace
	case "tell":
		return readTell
	case "answer":
		return readReply
	case "custom":
		return readCustom
	case "steered":
		return readSteered
	case "fail":
		return readFail
	case "finish":
		return readFinish
	case "crash":
		return readCrash
	}
	return nil
}

// alone refuses a step that may not stand in a parallel branch.
func (r *reader) alone(n *yaml.Node, what string) {
	if r.parallel {
		r.fail(n, "%s cannot stand in a parallel branch, unless inside an agent", what)
	}
}

// as reads the name under which a step's result is kept.
func (r *reader) as(o *object) string {
	name := o.name("as")
	if name != "" {
		r.names[name] = true
	}
	return name
}

// branches are steps by the result for which they are performed.
type branches map[string]sequence

// otherwise is the branch for results without one of their own.
const otherwise = "else"

// on reads the branches of a step whose results are known.
func (r *reader) on(o *object, m manner, results ...string) branches {
	n := o.take("on")
	if n == nil {
		return nil
	}
	what := o.what + ": on"
	on := r.object(n, what)
	b := branches{}
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		word := n.Content[i].Value
		if on.take(word); word != otherwise && !slices.Contains(results, word) {
			r.fail(n.Content[i], "%s: %q is no possible result; possible are %s, else", what, word, strings.Join(results, ", "))
		}
		b[word] = r.steps(n.Content[i+1], m)
	}
	return b
}
