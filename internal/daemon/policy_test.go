package daemon

import (
	"slices"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/config"
)

// What the configuration takes as a classification a run can record, and it names all types of
// records that can be classified.
func TestClassificationsAreThoseOfTheContract(t *testing.T) {
	types := append(harness.Types(), harness.SubrunStarted, harness.SubrunCompleted, harness.ReasoningStarted, harness.ReasoningDelta, harness.ReasoningCompleted)
	for _, kind := range types {
		cfg := config.Config{Harness: config.Harness{Classify: []config.Classification{{Type: string(kind), Class: config.ClassSecret}}}}
		allowed := logPolicy(cfg).Validate() == nil
		if listed := slices.Contains(config.RecordTypes(), string(kind)); listed != allowed {
			t.Errorf("%s: the configuration takes it: %v, a run can record it: %v", kind, listed, allowed)
		}
	}
	for _, kind := range config.RecordTypes() {
		if !slices.Contains(types, harness.Type(kind)) {
			t.Errorf("%s is no type of a record", kind)
		}
	}
	for _, class := range []string{config.ClassPublic, config.ClassPrivate, config.ClassSecret} {
		cfg := config.Config{Harness: config.Harness{Classify: []config.Classification{{Tool: "a*", Agent: "b?", Class: class}}}}
		recorded, err := harness.ParsePolicy(logPolicy(cfg).Encode())
		if err != nil || len(recorded.Rules) != 1 || string(recorded.Rules[0].Class) != class {
			t.Errorf("%s: got %+v, %v", class, recorded, err)
		}
	}
}
