package naryatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/mahati-host/mahati/internal/referencetest"
	"github.com/mahati-host/mahati/narya"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is an OpenAPI document that judges.
type Contract struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var ours = sync.OnceValues(func() (*Contract, error) { return newContract(narya.OpenAPI()) })

// Ours returns our own document.
func Ours(t testing.TB) *Contract {
	t.Helper()
	c, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mapped are the discriminator's entries as the published document has them: objects,
// where OpenAPI wants texts.
var mapped = regexp.MustCompile(`(?m)^( {10}[a-z-]+:)\n {12}\$ref: ('#/components/schemas/\w+Event')$`)

var published = sync.OnceValues(func() (*Contract, error) {
	dir, ok := referencetest.Find()
	if !ok {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "narya", "narya-events.openapi.yaml"))
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(mapped.ReplaceAll(text, []byte("$1 $2")))
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return newContract(data)
})

// Published returns the published document, and nil where the reference folder is missing:
// whoever must have it asks for the folder first.
func Published(t testing.TB) *Contract {
	t.Helper()
	c, err := published()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newContract(document []byte) (*Contract, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
	if err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	c := &Contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource(resource, doc)
}

const resource = "contract.json"

// Value says what the schema of that name says of a JSON text.
func (c *Contract) Value(name, text string) error {
	return c.judge("/components/schemas/"+name, text)
}

// Event says whether a text is the data of a frame.
func (c *Contract) Event(text string) error { return c.Value("Event", text) }

func (c *Contract) judge(pointer, text string) error {
	schema, err := c.schema(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

func (c *Contract) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.compiled[pointer]; known != nil {
		return known, nil
	}
	schema, err := c.compiler.Compile(resource + "#" + pointer)
	if err != nil {
		return nil, err
	}
	c.compiled[pointer] = schema
	return schema, nil
}

// Response says whether an operation may answer so. A refusal of a path that is none of the
// document's, or of a method that it has not, has to be the envelope of errors.
func (c *Contract) Response(method, path string, status int, mediaType, body string) error {
	template, operation := c.operation(method, path)
	if operation == nil {
		if status < 400 {
			return fmt.Errorf("%s %s is no operation of the document, and was answered %d", method, path, status)
		}
		return c.Value("Error", body)
	}
	at := "/paths/" + escape(template) + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(status)
	response, ok := at, false
	var described map[string]any
	if described, ok = operation["responses"].(map[string]any)[strconv.Itoa(status)].(map[string]any); !ok {
		return fmt.Errorf("%s %s does not say that it answers %d: %s", method, template, status, body)
	}
	if ref, isRef := described["$ref"].(string); isRef {
		response = strings.TrimPrefix(ref, "#")
		described = c.at(response)
	}
	content, _ := described["content"].(map[string]any)
	mediaType, _, _ = strings.Cut(mediaType, ";")
	if len(content) == 0 {
		if body != "" {
			return fmt.Errorf("%s %s answers %d without a body, and gave %s", method, template, status, body)
		}
		return nil
	}
	if _, ok := content[mediaType]; !ok {
		return fmt.Errorf("%s %s does not say that it answers %d as %s", method, template, status, mediaType)
	}
	if mediaType != "application/json" {
		return nil
	}
	return c.judge(response+"/content/"+escape(mediaType)+"/schema", body)
}

// operation finds an operation and the template of its path.
func (c *Contract) operation(method, path string) (template string, operation map[string]any) {
	best := -1
	for t, item := range c.doc["paths"].(map[string]any) {
		op, has := item.(map[string]any)[strings.ToLower(method)].(map[string]any)
		if fixed, fits := matches(t, path); fits && has && fixed > best {
			best, template, operation = fixed, t, op
		}
	}
	return template, operation
}

// matches reports whether a path is of a template, and how many steps of it are fixed.
func matches(template, path string) (fixed int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return 0, false
	}
	for i := range want {
		switch {
		case strings.HasPrefix(want[i], "{"):
		case want[i] != got[i]:
			return 0, false
		default:
			fixed++
		}
	}
	return fixed, true
}

// at returns the object at a pointer of the document.
func (c *Contract) at(pointer string) map[string]any {
	at := c.doc
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		at, _ = at[step].(map[string]any)
	}
	return at
}

// escape writes a step of a pointer within a URL's fragment.
func escape(step string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(step)
}
