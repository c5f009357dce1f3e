package narad

// ProgressStatus is how an activity stands.
type ProgressStatus string

// The statuses.
const (
	ProgressActive    ProgressStatus = "active"
	ProgressCompleted ProgressStatus = "completed"
	ProgressFailed    ProgressStatus = "failed"
	ProgressCancelled ProgressStatus = "cancelled"
)

var progressStatuses = []ProgressStatus{ProgressActive, ProgressCompleted, ProgressFailed, ProgressCancelled}

// Privacy says who may see an activity.
type Privacy string

// The degrees of privacy.
const (
	PrivacyPublic    Privacy = "public"
	PrivacyInternal  Privacy = "internal"
	PrivacySensitive Privacy = "sensitive"
)

var privacies = []Privacy{PrivacyPublic, PrivacyInternal, PrivacySensitive}

// ProgressRecorded tells of an activity inside a run; it has no lifecycle meaning
// (specification §9.8).
type ProgressRecorded struct {
	Event
	ProgressID string
	Category   string
	Label      string
	Detail     string
	Status     ProgressStatus
	Privacy    Privacy
	Usage      *Usage
}

// Type returns progress.recorded.
func (*ProgressRecorded) Type() Type { return TypeProgressRecorded }

func (p *ProgressRecorded) fields(c *coder) {
	p.envelope(c, laneActivity)
	c.id("progressId", &p.ProgressID, required)
	c.id("category", &p.Category, required)
	c.id("label", &p.Label, required)
	c.text("detail", &p.Detail, optional)
	word(c, "status", &p.Status, progressStatuses, required)
	word(c, "privacy", &p.Privacy, privacies, required)
	usage(c, "usage", &p.Usage)
}
