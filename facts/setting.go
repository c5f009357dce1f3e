package facts

// The names of facts by which a session is set up anew.
const (
	SessionTitled  = "mahati.session.titled"
	SessionVariant = "mahati.session.variant"
	SessionStyle   = "mahati.session.style"
	SessionWarming = "mahati.session.warming"
	SessionViewed  = "mahati.session.viewed"
)

// Titled is the payload of SessionTitled: what people call the session, "" for nothing.
type Titled struct {
	Title string `json:"title"`
	Was   string `json:"was"`
}

// Varied is the payload of SessionVariant: the preset of the model under which the next
// run works, "" for the model's own defaults.
type Varied struct {
	Variant string `json:"variant"`
	Was     string `json:"was"`
}

// Styled is the payload of SessionStyle: the style in which the next run answers, "" for
// the agent's own.
type Styled struct {
	Style string `json:"style"`
	Was   string `json:"was"`
}

// Warmed is the payload of SessionWarming: whether a provider's cache is to be kept while
// nobody uses the session, and what that may cost in the session's whole life.
type Warmed struct {
	Enabled    bool    `json:"enabled"`
	CeilingUSD float64 `json:"ceilingUsd"`
}

// Viewed is the payload of SessionViewed: somebody has seen what had happened until then.
type Viewed struct{}

// Branched says where a session left the one that it goes on from: its conversation is
// that of the parent up to and with the fact of this sequence, and then its own.
type Branched struct {
	Through int64 `json:"throughSessionSequence"`
}
