package acptest

import (
	"fmt"
	"strings"
)

// choices are what a client can choose, as further members of an answer.
func (a *fake) choices() string {
	if list, ok := a.value("oldmodels"); ok {
		var models []string
		for id := range strings.SplitSeq(list, ",") {
			models = append(models, fmt.Sprintf(`{"modelId":%q,"name":%q}`, id, id))
		}
		current, _, _ := strings.Cut(list, ",")
		return fmt.Sprintf(`,"models":{"currentModelId":%q,"availableModels":[%s]}`, current, strings.Join(models, ","))
	}
	var options []string
	for word, category := range map[string]string{"models": "model", "levels": "thought_level"} {
		list, ok := a.value(word)
		if !ok {
			continue
		}
		var values []string
		for id := range strings.SplitSeq(list, ",") {
			values = append(values, fmt.Sprintf(`{"value":%q,"name":%q}`, id, id))
		}
		current, _, _ := strings.Cut(list, ",")
		options = append(options, fmt.Sprintf(
			`{"id":"the-%s","name":"x","category":%q,"type":"select","currentValue":%q,"options":[{"group":"g","name":"G","options":[%s]}]}`,
			category, category, current, strings.Join(values, ",")))
	}
	if options == nil {
		return ""
	}
	options = append(options, `{"id":"flag","name":"x","type":"boolean","currentValue":true}`)
	return `,"configOptions":[` + strings.Join(options, ",") + `]`
}

// choose notes what a client chooses.
func (a *fake) choose(m message) {
	a.mu.Lock()
	a.chosen = append(a.chosen, m.Method+" "+m.Params.ConfigID+m.Params.ModelID+" "+m.Params.Value)
	a.mu.Unlock()
	a.answer(m.ID, `{}`)
}
