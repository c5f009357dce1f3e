package narad

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// describing is what a coder has written of a schema.
type describing struct {
	properties []Member // in the order of the visits
	required   []string
	paired     [][]string // names that stand together or not at all
}

// The forms of fields, as JSON Schema.
const (
	formAny    = `{}`
	formNever  = `false`
	formID     = `{"$ref":"#/$defs/id"}`
	formText   = `{"type":"string"}`
	formTime   = `{"$ref":"#/$defs/time"}`
	formName   = `{"$ref":"#/$defs/name"}`
	formCount  = `{"$ref":"#/$defs/count"}`
	formIndex  = `{"$ref":"#/$defs/index"}`
	formPatch  = `{"$ref":"#/$defs/patch"}`
	formCursor = `{"$ref":"#/$defs/cursor"}`
	formUsage  = `{"$ref":"#/$defs/usage"}`

	formMembers   = `{"type":"array","items":{"$ref":"#/$defs/member"}}`
	formOperation = `{"$ref":"#/$defs/operation"}`
)

// formOfCount returns the form of an integer of at least least, which is 0 or 1.
func formOfCount(least int64) string {
	if least == 0 {
		return formIndex
	}
	return formCount
}

// formOfWord returns the form of a word of a closed set, or of the one that is known.
func formOfWord[T ~string](known T, allowed []T) string {
	if known != "" {
		return `{"const":` + quotedText(string(known)) + `}`
	}
	list := make([]string, len(allowed))
	for i, a := range allowed {
		list[i] = quotedText(string(a))
	}
	return `{"enum":[` + strings.Join(list, ",") + `]}`
}

func (r words) form() string {
	form := `{"type":"array","items":` + formID
	if r.required {
		form += `,"minItems":1`
	}
	if r.unique {
		form += `,"uniqueItems":true`
	}
	return form + "}"
}

// formOf returns the form of an object by its fields.
func formOf(fields func(*coder)) string {
	c := &coder{mode: schema, describing: new(describing)}
	fields(c)
	return "{" + c.describing.text() + "}"
}

// formOfSource returns the form of a graph's source cursor.
func formOfSource(id string) string {
	return `{"type":"object","required":["sequence"],"properties":{"sequence":` + formCount + `,"` + id + `":` + formID +
		`},"additionalProperties":false}`
}

// describes reports whether the coder writes a schema, and then writes the field.
func (c *coder) describes(name, form string, n need) bool {
	if c.mode != schema {
		return false
	}
	at := slices.IndexFunc(c.properties, func(m Member) bool { return m.Name == name })
	if at < 0 {
		at = len(c.properties)
		c.properties = append(c.properties, Member{Name: name})
	}
	c.properties[at].Value = Raw(form)
	if n == required {
		c.demand(name)
	}
	return true
}

// demand requires a field that is described elsewhere.
func (c *coder) demand(name string) {
	if name != "" && !slices.Contains(c.describing.required, name) {
		c.describing.required = append(c.describing.required, name)
	}
}

// together describes fields that stand together or not at all.
func (c *coder) together(names ...string) {
	if c.mode == schema {
		c.paired = append(c.paired, names)
	}
}

// tells reports whether the coder writes a schema and something holds.
func (c *coder) tells(holds bool) bool { return c.mode == schema && holds }

// text writes what was described as the members of a schema, without braces.
func (d *describing) text() string {
	out := []byte(`"type":"object"`)
	if len(d.required) > 0 {
		out = append(out, `,"required":`...)
		out = appendWords(out, d.required)
	}
	out = append(out, `,"properties":{`...)
	for i, m := range d.properties {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, quotedText(m.Name)+":"...)
		out = append(out, m.Value...)
	}
	out = append(out, '}')
	if dependent := d.dependent(); dependent != "" {
		out = append(out, `,"dependentRequired":{`+dependent+"}"...)
	}
	return string(out)
}

// dependent writes the pairs that are not required anyway.
func (d *describing) dependent() string {
	var list []string
	for _, names := range d.paired {
		if slices.Contains(d.required, names[0]) && slices.Contains(d.required, names[1]) {
			continue
		}
		for i, name := range names {
			others := slices.Delete(slices.Clone(names), i, i+1)
			list = append(list, quotedText(name)+":"+string(appendWords(nil, others)))
		}
	}
	return strings.Join(list, ",")
}

func quotedText(s string) string {
	out, _ := jsontext.AppendQuote(nil, s)
	return string(out)
}

// variants are the forms of a record whose fields depend on one of them: one record for
// each of its values.
func variants(t Type) []Record {
	scoped := func(of func(Scope) Record, all ...Scope) (list []Record) {
		for _, s := range all {
			list = append(list, of(s))
		}
		return list
	}
	switch t {
	case TypeInterruptRequested:
		return scoped(func(s Scope) Record { return &InterruptRequested{Scope: s} }, interruptScopes...)
	case TypeInterruptResolved:
		return scoped(func(s Scope) Record { return &InterruptResolved{Scope: s} }, interruptScopes...)
	case TypeMessageUserRecorded:
		return scoped(func(s Scope) Record { return &MessageUserRecorded{MessageScope: s} }, scopes...)
	case TypeMessageTextStarted:
		return scoped(func(s Scope) Record { return &MessageTextStarted{MessageScope: s} }, scopes...)
	case TypeStateSnapshot, TypeUIStateSnapshot:
		return scoped(func(s Scope) Record { return &StateSnapshot{Kind: t, Scope: s} }, scopes...)
	case TypeStateDelta, TypeUIStateDelta:
		return scoped(func(s Scope) Record { return &StateDelta{Kind: t, Scope: s} }, scopes...)
	case TypeStateCompacted:
		return scoped(func(s Scope) Record { return &StateCompacted{Scope: s} }, scopes...)
	case TypeGraphSnapshot:
		return scoped(func(s Scope) Record { return &GraphSnapshot{GraphScope: GraphScope{Scope: s}} }, interruptScopes...)
	case TypeGraphDelta:
		return scoped(func(s Scope) Record { return &GraphDelta{GraphScope: GraphScope{Scope: s}} }, interruptScopes...)
	case TypeViewUpdated:
		return []Record{&ViewUpdated{Operation: OperationReplace}, &ViewUpdated{Operation: OperationPatch}}
	}
	return []Record{registry[t].make()}
}

// schemaOf returns the schema of a type, without what all documents begin with.
func schemaOf(t Type) string {
	var list []string
	for _, rec := range variants(t) {
		list = append(list, formOf(func(c *coder) {
			c.describes("type", `{"const":`+quotedText(string(t))+"}", required)
			c.describes("protocolVersion", `{"const":`+quotedText(Version)+"}", required)
			if t.Class() == ClassControl {
				c.forbid(CodeInvalidControl, "", authorityFields...)
			}
			rec.fields(c)
		}))
	}
	if len(list) == 1 {
		return list[0]
	}
	return `{"oneOf":[` + strings.Join(list, ",") + "]}"
}

// Schema returns a JSON Schema (draft 2020-12) of the records of these types, or of every
// type where none is named: what a host may write, from the list of fields that
// [DecodeStrict] and [Encode] go by. Limits of size and depth, and that a delta's revision
// follows its base, are beyond a schema. The second result is false for a type that
// narad/v1 lacks.
func Schema(types ...Type) ([]byte, bool) {
	if len(types) == 0 {
		types = slices.Sorted(slices.Values(Types()))
	}
	names, choices, defs := make([]string, len(types)), make([]string, len(types)), new(strings.Builder)
	for i, t := range types {
		if _, known := registry[t]; !known {
			return nil, false
		}
		names[i] = string(t)
		choices[i] = `{"if":{"properties":{"type":{"const":` + quotedText(names[i]) + `}}},"then":{"$ref":"#/$defs/` + names[i] + `"}}`
		defs.WriteString("," + quotedText(names[i]) + ":" + schemaOf(t))
	}
	document := `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Records of narad/v1 as a host may write them",` +
		`"type":"object","required":["type"],"properties":{"type":{"enum":` + string(appendWords(nil, names)) + `}},` +
		`"allOf":[` + strings.Join(choices, ",") + `],"$defs":{` + sharedForms() + defs.String() + "}}"
	out := jsontext.Value(document)
	if err := out.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("narad: a schema is JSON: " + err.Error())
	}
	return append(out, '\n'), true
}

// sharedForms are the definitions that fields refer to.
func sharedForms() string {
	var cursors []string
	for _, kind := range scopes {
		cursors = append(cursors, formOf((&Cursor{Kind: kind}).fields))
	}
	most := strconv.Itoa(MaxInteger)
	const location = `{"type":"string","pattern":"^(/([^~/]|~[01])*)+$","not":{"pattern":"/(__proto__|constructor|prototype)(/|$)"}}`
	const with = `{"if":{"properties":{"op":{"enum":[`
	return strings.Join([]string{
		`"id":{"type":"string","minLength":1}`,
		`"count":{"type":"integer","minimum":1,"maximum":` + most + `}`,
		`"index":{"type":"integer","minimum":0,"maximum":` + most + `}`,
		`"name":{"type":"string","pattern":"^[a-z0-9]+(\\.[a-z0-9]+)+$"}`,
		`"time":{"type":"string","format":"date-time","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[+-]00:00)$"}`,
		`"cursor":{"oneOf":[` + strings.Join(cursors, ",") + "]}",
		`"location":` + location,
		`"usage":` + formOf(new(Usage).fields),
		`"member":` + formOf(new(MemberDecision).fields),
		`"operation":` + formOfWord("", operations),
		`"patch":{"type":"array","minItems":1,"items":{"type":"object","required":["op","path"],"properties":{"op":` + formOfWord("", ops) +
			`,"path":{"$ref":"#/$defs/location"},"from":{"$ref":"#/$defs/location"}},"allOf":[` +
			with + `"add","replace","test"]}}},"then":{"required":["value"]}},` +
			with + `"move","copy"]}}},"then":{"required":["from"]}}]}}`,
	}, ",")
}
