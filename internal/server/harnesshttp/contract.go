package harnesshttp

import (
	"net/http"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

// added are the types of records beyond those of v1, which lets a producer add some (R36).
var added = []harness.Type{
	harness.SubrunStarted, harness.SubrunCompleted,
	harness.ReasoningStarted, harness.ReasoningDelta, harness.ReasoningCompleted,
}

// contract answers with the published inventory, word for word, and beside it what this host
// adds and where its bounds are.
func (b *Binding) contract(w http.ResponseWriter, r *request) error {
	if err := access.Authorize(r.principal(), access.ReadCapabilities, ""); err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{
		"run_protocol": harness.Contract(),
		"additions":    map[string]any{"events": added, "payload_fields": []string{"subrun_id"}},
		"limits": map[string]uint64{
			"credit_default": defaultBatch, "credit_batch": maxBatch, "batch_bytes": maxBatchBytes, "wait_seconds": maxWait,
			"credit_stream": maxCredit, "grants_remembered": maxGrants, "body_bytes": server.MaxBody, "text_bytes": maxText,
			"reason_bytes": maxReason, "id_bytes": server.MaxID, "heartbeat_ms": uint64(b.opt.Heartbeat.Milliseconds()),
		},
		"host":  map[string]string{"name": "mahati", "version": b.opt.Version},
		"epoch": b.host.Epoch(),
	})
}
