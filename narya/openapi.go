package narya

import (
	"embed"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fragments are the parts of the document, one for each tag.
//
//go:embed openapi/*.json
var fragments embed.FS

// sections are the fragments in the order in which their tags stand.
var sections = []string{
	"base", "host", "sessions", "messages", "transcript", "permissions", "intercom", "workflows", "extensions", "events",
}

var openAPI = merge(sections)

// OpenAPI returns the OpenAPI 3.1 document of what Mahati serves of the contract, in our
// words.
func OpenAPI() []byte { return append([]byte(nil), openAPI...) }

// fragment is what one part has of the document. Names of all parts are distinct, and a path
// has operations alone.
type fragment struct {
	OpenAPI    string                               `json:"openapi,omitzero"`
	Info       jsontext.Value                       `json:"info,omitzero"`
	Servers    jsontext.Value                       `json:"servers,omitzero"`
	Tags       []jsontext.Value                     `json:"tags"`
	Paths      map[string]map[string]operation      `json:"paths"`
	Components map[string]map[string]jsontext.Value `json:"components"`
}

// operation is one operation, of which only the answers matter here.
type operation struct {
	Responses map[string]jsontext.Value `json:"responses"`
	Body      jsontext.Value            `json:"requestBody,omitzero"`
	Rest      jsontext.Value            `json:",embed"`
}

// refuses adds the answers that every operation may give, wherever the refusal comes from.
func (o operation) refuses() {
	common := map[string]string{
		"400": "BadRequest", "401": "Unauthorised", "403": "Forbidden", "500": "InternalServerError", "503": "NotReady",
	}
	if o.Body != nil {
		common["413"], common["422"] = "TooLarge", "Invalid"
	}
	for status, name := range common {
		if o.Responses[status] == nil {
			o.Responses[status] = jsontext.Value(`{"$ref":"#/components/responses/` + name + `"}`)
		}
	}
}

// merge makes one document of the fragments. They are a part of the program, which does
// not start with one that is broken.
func merge(names []string) []byte {
	whole := fragment{Paths: map[string]map[string]operation{}, Components: map[string]map[string]jsontext.Value{}}
	for _, name := range names {
		text, err := fragments.ReadFile("openapi/" + name + ".json")
		if err != nil {
			panic("narya: " + err.Error())
		}
		var one fragment
		if err := json.Unmarshal(text, &one, json.RejectUnknownMembers(true)); err != nil {
			panic("narya: openapi/" + name + ".json: " + err.Error())
		}
		if one.OpenAPI != "" {
			whole.OpenAPI, whole.Info, whole.Servers = one.OpenAPI, one.Info, one.Servers
		}
		whole.Tags = append(whole.Tags, one.Tags...)
		add(whole.Paths, one.Paths)
		add(whole.Components, one.Components)
	}
	for _, operations := range whole.Paths {
		for _, o := range operations {
			o.refuses()
		}
	}
	document, err := json.Marshal(whole, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		panic("narya: " + err.Error())
	}
	return document
}

func add[V any](to, from map[string]map[string]V) {
	for name, members := range from {
		if to[name] == nil {
			to[name] = map[string]V{}
		}
		maps.Copy(to[name], members)
	}
}
