package graph_test

import (
	"fmt"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// A host derives what it sends after each fact; a client applies it after the fact.
func Example() {
	started := &narad.RunStarted{}
	started.SessionID, started.RootRunID, started.RunID, started.Sequence = "s", "r", "r", 1
	started.Timestamp = "2026-08-05T00:00:00Z"
	called := &narad.ToolCallStarted{ToolCallID: "t", ToolName: "search", Executor: narad.ExecutorBackend, Args: narad.Raw("{}")}
	called.SessionID, called.RootRunID, called.RunID, called.Sequence = "s", "r", "r", 2
	called.Timestamp = "2026-08-05T00:00:01Z"

	host, client := graph.NewGraphs("s"), graph.NewView("s", graph.ViewOptions{})
	for _, fact := range []narad.Authority{started, called} {
		record, err := host.Apply(fact)
		if err != nil {
			fmt.Println(err)
			return
		}
		client.Apply(fact)
		fmt.Println(record.Type(), client.Apply(record).Kind)
	}
	g, _ := client.Graph(graph.RunTree("r"))
	fmt.Println(g.Revision, g.Edges)
	// Output:
	// graph.snapshot applied
	// graph.delta applied
	// 2 [{"from":"run:r","kind":"called","to":"tool:t"}]
}
