package naryahttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) hostRoutes() routes {
	return routes{
		"GET /v1/host":         b.about,
		"GET /v1/openapi.json": b.openAPI,
	}
}

// about is a host as GET /v1/host tells.
type about struct {
	Version   string   `json:"version"`
	StartedAt string   `json:"startedAt"`
	UptimeMs  int64    `json:"uptimeMs"`
	Mode      string   `json:"mode"`
	Store     store    `json:"store"`
	Agents    []string `json:"agents"`
}

type store struct {
	Epoch         string `json:"epoch"`
	OldestEventID string `json:"oldestEventId"`
	NewestEventID string `json:"newestEventId"`
	Writable      bool   `json:"writable"`
}

// modeServe is the one way in which a host runs: for itself, whoever its clients are.
const modeServe = "serve"

func (b *Binding) about(w http.ResponseWriter, r *request) error {
	if err := access.Authorize(r.principal(), access.ReadCapabilities, ""); err != nil {
		return err
	}
	kept := b.host.Events()
	return write(w, http.StatusOK, about{
		Version:   b.opt.Version,
		StartedAt: narad.Timestamp(b.opt.Started),
		UptimeMs:  max(0, b.opt.Now().Sub(b.opt.Started).Milliseconds()),
		Mode:      modeServe,
		Store: store{
			Epoch: b.host.Epoch(), OldestEventID: narya.FormatID(int64(kept.Oldest)), NewestEventID: narya.FormatID(int64(kept.Newest)),
			Writable: b.host.Writable(),
		},
		Agents: append([]string{}, b.opt.Agents...),
	})
}

// openAPI serves the document of this host.
func (b *Binding) openAPI(w http.ResponseWriter, r *request) error {
	if err := access.Authorize(r.principal(), access.ReadCapabilities, ""); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(narya.OpenAPI()) // the client may have left
	return nil
}
