package script

import (
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"go.yaml.in/yaml/v3"
)

// Models returns what the file offers. A script runs on none: it
// can say which one was chosen.
func (k *kind) Models() (list []agent.Model, known bool) { return slices.Clone(k.script.models), true }

// DefaultModel is the first that the file offers.
func (k *kind) DefaultModel() (agent.Model, bool) {
	if len(k.script.models) == 0 {
		return agent.Model{}, false
	}
	return k.script.models[0], true
}

// maxModels bounds those of a file, and the variants of one.
const maxModels = 64

// models reads the models that a session can choose from.
func (r *reader) models(o *object) {
	n := o.take("models")
	if n == nil {
		return
	}
	for _, item := range r.items(n, "models", maxModels) {
		r.model(item)
	}
}

// model reads provider/model, with or without variants.
func (r *reader) model(n *yaml.Node) {
	name, variants := "", []string(nil)
	if n.Kind == yaml.MappingNode {
		o := r.object(n, "a model")
		name = o.plain("model")
		if list := o.take("variants"); list != nil {
			for _, v := range r.items(list, "variants", maxModels) {
				variants = append(variants, r.name(v, "a variant"))
			}
		}
		o.close("model", "variants")
	} else {
		name = r.plain(n, "a model")
	}
	m, err := agent.ParseModel(name)
	switch {
	case err != nil:
		r.fail(n, "a model %s", err)
	case slices.ContainsFunc(r.script.models, func(have agent.Model) bool { return have.Provider == m.Provider && have.ID == m.ID }):
		r.fail(n, "the model %s stands twice", name)
	}
	m.Variants = variants
	r.script.models = append(r.script.models, m)
}

// chosen returns a variable that tells what was chosen for the session, or was said in it
// before.
func (pl *play) chosen(name string) string {
	switch is := pl.chose; name {
	case "model":
		if is.Model == "" {
			return ""
		}
		return is.Provider + "/" + is.Model
	case "variant":
		return is.Variant
	case "style":
		return is.Style
	case "cwd":
		return pl.cwd
	}
	var text strings.Builder
	for _, m := range pl.before {
		text.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return text.String()
}

// settings are the variables that tell of the session.
var settings = []string{"model", "variant", "style", "cwd", "conversation"}
