package harness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/referencetest"
)

// vectors are the public implementation's answers.
type vectors struct {
	Contract      json.RawMessage `json:"contract"`
	InputValidate []struct {
		Label string
		Input json.RawMessage
		OK    bool
	} `json:"input_validate"`
	Redact []struct {
		Sens         harness.Sensitivity
		AllowPrivate bool
		Redacted     bool
		Payload      json.RawMessage
	} `json:"redact"`
}

// TestReferenceVectors: inputs, redaction and the inventory are the public implementation's.
func TestReferenceVectors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(referencetest.Dir(t), "harness", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.InputValidate) != 23 || len(v.Redact) != 12 {
		t.Errorf("%d inputs and %d redactions", len(v.InputValidate), len(v.Redact))
	}
	for _, c := range v.InputValidate {
		var in harness.Input
		if err := json.Unmarshal(c.Input, &in); err != nil {
			t.Fatal(err)
		}
		if err := in.Validate(); (err == nil) != c.OK {
			t.Errorf("%s: got %v, want it taken: %v", c.Label, err, c.OK)
		}
		if _, err := harness.DecodeInput(c.Input); (err == nil) != c.OK {
			t.Errorf("%s, decoded: got %v, want it taken: %v", c.Label, err, c.OK)
		}
	}
	for _, c := range v.Redact {
		payload := `{"message_id":"m","text":"t"}`
		got := harness.Redact(harness.Event{Sensitivity: c.Sens, Payload: []byte(payload)}, c.AllowPrivate)
		if !sameJSON(t, got.Payload, c.Payload) || (string(got.Payload) != payload) != c.Redacted {
			t.Errorf("%q, private allowed %v: got %s, want %s", c.Sens, c.AllowPrivate, got.Payload, c.Payload)
		}
	}
	inventory, err := json.Marshal(harness.Contract())
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(t, inventory, v.Contract) {
		t.Errorf("got  %s\nwant %s", inventory, v.Contract)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var left, right any
	if err := json.Unmarshal(a, &left); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &right); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(left, right)
}
