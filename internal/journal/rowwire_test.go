package journal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// What a row counts for in a batch is the length of its stored form.
func TestSizeOfARowIsThatOfItsStoredForm(t *testing.T) {
	const wide = 1<<63 + 1
	long := strings.Repeat("x", 300)
	rows := []Row{
		SessionRow{}, SessionRow{Session: long, Workspace: "w", State: "idle", Value: bytes.Repeat([]byte{1}, 127)},
		InterruptRow{}, InterruptRow{ID: "i", Session: "s", Sequence: 127, Open: true, Value: []byte("v"), Offset: 128},
		RunRow{}, RunRow{ID: "r", Session: "s", Root: long, First: 1 << 14, Last: wide, State: "running", Value: []byte("v")},
		WorkflowRow{}, WorkflowRow{ID: "w", Session: "s", First: 1<<14 - 1, Last: 1 << 35, State: "running"},
		OpenWorkRow{}, OpenWorkRow{Session: "s", Value: bytes.Repeat([]byte{1}, 128)},
		TimerRow{}, TimerRow{Session: "s", ID: "t", Due: time.UnixMicro(-1), Carried: true}, TimerRow{Due: time.UnixMicro(1 << 50)},
		CommandRow{}, CommandRow{Session: "s", Space: "p", ID: "c", Hash: bytes.Repeat([]byte{1}, 32), Value: []byte("v")},
		AliasRow{}, AliasRow{Space: "p", Alias: "a", Session: "s", ID: "i"},
		LeaseRow{}, LeaseRow{Executor: "e", Value: []byte("v")},
		TokenRow{}, TokenRow{Executor: "e", ID: "i", Session: "s", Value: []byte("v")},
		AgentRow{}, AgentRow{ID: "a", Session: "s", Value: []byte("v")},
		DecisionRow{}, DecisionRow{Of: "s", ID: "i", Session: "s", Decision: long, Value: []byte("v")},
		MaterialRow{}, MaterialRow{Session: "s", Space: "p", ID: "i", Digest: long, Value: []byte("v")},
	}
	kinds := map[Kind]bool{}
	for i, row := range rows {
		kinds[row.Key().Kind] = true
		if got, want := sizeOf(row), len(EncodeRow(row)); got != want {
			t.Errorf("row %d, a %T: got %d bytes, want %d", i, row, got, want)
		}
	}
	if len(kinds) != len(Kinds) {
		t.Errorf("%d kinds of rows were looked at, want %d", len(kinds), len(Kinds))
	}
}
