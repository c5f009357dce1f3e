package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

const examplePrefix = "Example: "

// setOffExamples gives every example in the help of a command a line of its own that is
// not wrapped, so that it can be copied.
func setOffExamples(k *kong.Kong) error {
	k.Model.Help = layOut(k.Model.Help)
	return kong.Visit(k.Model.Node, func(n kong.Visitable, next kong.Next) error {
		if node, ok := n.(*kong.Node); ok {
			node.Detail = layOut(node.Detail)
		}
		return next(nil)
	})
}

// layOut makes the lines of a help text that begin with "Example: " a block that is set
// off by indentation.
func layOut(text string) string {
	var words, examples []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if example, ok := strings.CutPrefix(line, examplePrefix); ok {
			examples = append(examples, "  "+example)
			continue
		}
		words = append(words, line)
	}
	said := strings.TrimSpace(strings.Join(words, "\n"))
	if len(examples) == 0 {
		return said
	}
	title := "Example:"
	if len(examples) > 1 {
		title = "Examples:"
	}
	return strings.TrimSpace(said + "\n\n" + title + "\n\n" + strings.Join(examples, "\n"))
}
