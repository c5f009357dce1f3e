package narya

import "github.com/mahati-host/mahati/narad"

// ToolCallStarted tells that an agent calls a tool.
type ToolCallStarted struct {
	TurnID     string
	ToolCallID string
	Tool       string
	// Input is a preview, an object of free form: see [Preview]. It may be nil.
	Input narad.Raw
}

// Type returns tool-call-started.
func (*ToolCallStarted) Type() Type { return TypeToolCallStarted }

func (p *ToolCallStarted) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("toolCallId", &p.ToolCallID, required)
	c.text("tool", &p.Tool, required)
	c.free("input", &p.Input)
}

// ToolCallUpdate is output of a tool as it comes. It is the tool's, so a terminal must
// clean it before it is shown.
type ToolCallUpdate struct {
	TurnID     string
	ToolCallID string
	Delta      string
}

// Type returns tool-call-update.
func (*ToolCallUpdate) Type() Type { return TypeToolCallUpdate }

func (p *ToolCallUpdate) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("toolCallId", &p.ToolCallID, required)
	c.text("delta", &p.Delta, required)
}

// ToolCallFinished tells that a call ended. It also retires the question that the call
// put.
type ToolCallFinished struct {
	TurnID     string
	ToolCallID string
	Tool       string
	Status     ToolStatus
	DurationMs *int64 // in milliseconds
	// Failure is why, for every status but ok; it may be empty.
	Failure     string
	FileTouches []FileTouch
}

// Type returns tool-call-finished.
func (*ToolCallFinished) Type() Type { return TypeToolCallFinished }

func (p *ToolCallFinished) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("toolCallId", &p.ToolCallID, required)
	c.text("tool", &p.Tool, required)
	word(c, "status", &p.Status, toolStatuses, required)
	c.maybeInteger("durationMs", &p.DurationMs, 0)
	c.text("failure", &p.Failure, optional)
	list(c, "fileTouches", &p.FileTouches, optional, 0)
}

// ToolStatus is how a call ended.
type ToolStatus string

// The statuses of a call.
const (
	ToolOK        ToolStatus = "ok"
	ToolError     ToolStatus = "error"
	ToolDenied    ToolStatus = "denied"
	ToolCancelled ToolStatus = "cancelled"
)

var (
	toolStatuses    = []ToolStatus{ToolOK, ToolError, ToolDenied, ToolCancelled}
	receiptStatuses = []ToolStatus{ToolOK, ToolError}
)

// FileTouch is a file that a call read or changed.
type FileTouch struct {
	Path string
	Op   FileOp
}

func (f *FileTouch) fields(c *coder) {
	c.text("path", &f.Path, required, atMost(4096))
	word(c, "op", &f.Op, fileOps, required)
}

// FileOp is what a call did to a file.
type FileOp string

// The operations.
const (
	FileRead   FileOp = "read"
	FileWrite  FileOp = "write"
	FileEdit   FileOp = "edit"
	FileDelete FileOp = "delete"
)

var fileOps = []FileOp{FileRead, FileWrite, FileEdit, FileDelete}

// ToolCallReceipt is a call that a program of the agent made from inside one of its own.
// Its status is ToolOK or ToolError.
type ToolCallReceipt struct {
	TurnID           string
	ParentToolCallID string
	Tool             string
	Status           ToolStatus
	Title            string
	// FileTouches are at most 128; FileTouchesTruncated says that there were more.
	FileTouches          []FileTouch
	FileTouchesTruncated bool
}

// Type returns tool-call-receipt.
func (*ToolCallReceipt) Type() Type { return TypeToolCallReceipt }

func (p *ToolCallReceipt) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("parentToolCallId", &p.ParentToolCallID, required)
	c.text("tool", &p.Tool, required)
	word(c, "status", &p.Status, receiptStatuses, required)
	c.text("title", &p.Title, optional)
	list(c, "fileTouches", &p.FileTouches, optional, 128)
	c.flag("fileTouchesTruncated", &p.FileTouchesTruncated)
}
