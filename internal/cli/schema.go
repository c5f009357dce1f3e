package cli

import (
	"fmt"

	"github.com/mahati-host/mahati/narad"
)

type schemaCommand struct {
	Types []string `arg:"" optional:"" name:"type" help:"Types such as run.started. Otherwise all."`
}

func (schemaCommand) Help() string {
	return `A schema (draft 2020-12) says what a host may write, one record at a time. What must follow what, and how large
a record may be, is beyond it: mahati narad check judges that.

Example: mahati narad schema > narad.schema.json
Example: mahati narad schema run.started tool.call.started`
}

// Run performs the command.
func (c schemaCommand) Run(a *app) error {
	types := make([]narad.Type, len(c.Types))
	for i, name := range c.Types {
		types[i] = narad.Type(name)
		if types[i].Class() == narad.ClassUnknown {
			return usage("docs/narad.md lists the types", "narad/v1 has no type %q", name)
		}
	}
	text, _ := narad.Schema(types...)
	_, err := fmt.Fprintf(a.Stdout, "%s", text)
	return err
}
