package bindingtest

import (
	"context"

	"github.com/mahati-host/mahati/internal/agent"
)

// Acts is an agent that a test writes as a function. It takes messages as it runs.
type Acts func(context.Context, agent.Handle) agent.Ending

// Open returns the agent itself.
func (a Acts) Open(context.Context, agent.Session) (agent.Agent, error) { return a, nil }

// Resumes says that it goes on with no turn after a restart.
func (a Acts) Resumes() bool { return false }

// Steers says that it takes messages.
func (a Acts) Steers() bool { return true }

// Run performs the function.
func (a Acts) Run(ctx context.Context, h agent.Handle) agent.Ending { return a(ctx, h) }

// Steer takes a message, and does nothing with it.
func (a Acts) Steer(context.Context, agent.Message) error { return nil }

// Close has nothing to close.
func (a Acts) Close() error { return nil }

// Deaf is an agent that takes no messages as it runs.
type Deaf struct{ Acts }

// Open returns the agent itself.
func (d Deaf) Open(context.Context, agent.Session) (agent.Agent, error) { return d, nil }

// Steers says that it takes none.
func (Deaf) Steers() bool { return false }

// Cast is agents by name, of which "test" is the default.
type Cast map[string]agent.Kind

// Kind returns the agent of a name.
func (c Cast) Kind(name string) (agent.Kind, bool) { k, ok := c[name]; return k, ok }

// Default is the name of the one for sessions that name none.
func (Cast) Default() string { return "test" }

// Speaks says two things and ends.
func Speaks(ctx context.Context, h agent.Handle) agent.Ending {
	_ = h.Text(ctx, "Hello, ")
	_ = h.Text(ctx, "world.")
	return agent.Ending{StopReason: "completed"}
}

// Waits works until it is stopped.
func Waits(ctx context.Context, _ agent.Handle) agent.Ending {
	<-ctx.Done()
	return agent.Ending{Outcome: agent.Cancelled}
}
