package narad

import "strconv"

// Lease names an executor and the lease under which it speaks (specification
// §11.1). A lease id is a secret.
type Lease struct {
	ClientExecutorID string
	LeaseID          string
}

func (l *Lease) visit(c *coder) {
	c.id("clientExecutorId", &l.ClientExecutorID, required)
	c.id("leaseId", &l.LeaseID, required)
}

// ClientAttached answers an executor's attach, and each of its heartbeats (R31).
type ClientAttached struct {
	Lease
	// HeartbeatIntervalMs is in milliseconds.
	HeartbeatIntervalMs int64
	LeaseExpiresAt      string
	Extra               []Member
}

// Type returns client.attached.
func (*ClientAttached) Type() Type { return TypeClientAttached }

func (a *ClientAttached) fields(c *coder) {
	a.visit(c)
	interval(c, "heartbeatIntervalMs", &a.HeartbeatIntervalMs)
	timestamp(c, "leaseExpiresAt", &a.LeaseExpiresAt, required)
}

// interval visits a number of milliseconds. A client takes a fraction too, and
// leaves it out.
func interval(c *coder, name string, p *int64) {
	if f, err := strconv.ParseFloat(c.take(name), 64); err == nil && !c.host() && 1 <= f && f <= MaxInteger {
		*p = int64(f)
		return
	}
	c.count(name, p, 1, required)
}

// ClientHeartbeat renews a lease (§11.2).
type ClientHeartbeat struct {
	Lease
	Extra []Member
}

// Type returns client.heartbeat.
func (*ClientHeartbeat) Type() Type { return TypeClientHeartbeat }

func (h *ClientHeartbeat) fields(c *coder) { h.visit(c) }

// ClientToolExecute tells one executor to run one tool call once (§11.3).
type ClientToolExecute struct {
	Lease
	// ExecutionToken is a secret that allows one finish.
	ExecutionToken          string
	ExecutionTokenExpiresAt string
	ToolCallID              string
	ToolName                string
	Args                    Raw
	Extra                   []Member
}

// Type returns client.tool.execute.
func (*ClientToolExecute) Type() Type { return TypeClientToolExecute }

func (e *ClientToolExecute) fields(c *coder) {
	e.visit(c)
	c.id("executionToken", &e.ExecutionToken, required)
	timestamp(c, "executionTokenExpiresAt", &e.ExecutionTokenExpiresAt, required)
	c.id("toolCallId", &e.ToolCallID, required)
	c.id("toolName", &e.ToolName, required)
	c.value("args", &e.Args, required)
}

// ClientToolFinish reports how a tool call ended (§11.3).
type ClientToolFinish struct {
	Lease
	ExecutionToken string
	ToolCallID     string
	Outcome        Outcome
	Response       Raw
	Extra          []Member
}

// Type returns client.tool.finish.
func (*ClientToolFinish) Type() Type { return TypeClientToolFinish }

func (f *ClientToolFinish) fields(c *coder) {
	f.visit(c)
	c.id("executionToken", &f.ExecutionToken, required)
	c.id("toolCallId", &f.ToolCallID, required)
	word(c, "outcome", &f.Outcome, outcomes, required)
	c.value("response", &f.Response, required)
}

// ServerHeartbeat fills the silence of a stream (§11.2). ServerTime may be empty.
type ServerHeartbeat struct {
	ServerTime string
	Extra      []Member
}

// Type returns server.heartbeat.
func (*ServerHeartbeat) Type() Type { return TypeServerHeartbeat }

func (h *ServerHeartbeat) fields(c *coder) {
	timestamp(c, "serverTime", &h.ServerTime, optional)
}
