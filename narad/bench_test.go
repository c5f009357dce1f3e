package narad

import (
	stdjson "encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// benchRecords are what a session is mostly made of: a piece of a message, about 420
// bytes, and the start of a tool call, about 450.
var benchRecords = []struct{ name, text string }{
	{"delta", `{"type":"message.text.delta","protocolVersion":"narad/v1","eventId":"1842.k3Jd82mQ","timestamp":"2027-03-14T09:26:53.589Z","sessionId":"01957f2e-7c4a-7b1e-9d52-3f0a6b8c1d2e","sessionSequence":1842,"rootRunId":"01957f2e-8d10-7c33-a1b4-5e6f70819203","runId":"01957f2e-8d10-7c33-a1b4-5e6f70819203","sequence":1511,"messageId":"01957f2f-0a1b-7d44-b2c5-60718293a4b5","delta":"The channel is nine metres deep at low tide, so she can "}`},
	{"tool", `{"type":"tool.call.started","protocolVersion":"narad/v1","eventId":"1843.p9Xw41bT","timestamp":"2027-03-14T09:26:54.013Z","sessionId":"01957f2e-7c4a-7b1e-9d52-3f0a6b8c1d2e","sessionSequence":1843,"rootRunId":"01957f2e-8d10-7c33-a1b4-5e6f70819203","runId":"01957f2e-8d10-7c33-a1b4-5e6f70819203","sequence":1512,"toolCallId":"01957f2f-1b2c-7e55-83d6-718293a4b5c6","toolName":"depth.read","executor":"backend","args":{"at":[51.95,4.05],"unit":"m"}}`},
}

// flat is what a struct of one's own would look like.
type flat struct {
	Type            string         `json:"type"`
	ProtocolVersion string         `json:"protocolVersion"`
	EventID         string         `json:"eventId"`
	Timestamp       string         `json:"timestamp"`
	SessionID       string         `json:"sessionId"`
	SessionSequence int64          `json:"sessionSequence"`
	RootRunID       string         `json:"rootRunId"`
	RunID           string         `json:"runId"`
	Sequence        int64          `json:"sequence"`
	MessageID       string         `json:"messageId"`
	Delta           string         `json:"delta"`
	ToolCallID      string         `json:"toolCallId"`
	ToolName        string         `json:"toolName"`
	Executor        string         `json:"executor"`
	Args            jsontext.Value `json:"args"`
	Extra           jsontext.Value `json:",embed"`
}

// ratio reports how often longer the benchmark's operation takes than another one,
// measured in the same run.
func ratio(b *testing.B, name string, other func()) {
	b.Helper()
	per := float64(b.Elapsed()) / float64(b.N)
	rounds := 0
	began := time.Now()
	for ; time.Since(began) < 50*time.Millisecond || rounds == 0; rounds++ {
		for range 64 {
			other()
		}
	}
	b.ReportMetric(per/(float64(time.Since(began))/float64(rounds*64)), name)
}

func BenchmarkDecode(b *testing.B) {
	for _, r := range benchRecords {
		for name, d := range map[string]interface{ Decode([]byte) (Record, error) }{
			"lenient": Decoder{}, "strict": Decoder{Strict: true}, "reader": &Reader{},
		} {
			b.Run(r.name+"/"+name, func(b *testing.B) {
				data := []byte(r.text)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Decode(data); err != nil {
						b.Fatal(err)
					}
				}
				ratio(b, "x-valid", func() { _ = jsontext.Value(data).IsValid() })
				ratio(b, "x-struct", func() {
					var v flat
					_ = json.Unmarshal(data, &v)
				})
				ratio(b, "x-map", func() {
					var v map[string]any
					_ = stdjson.Unmarshal(data, &v)
				})
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, r := range benchRecords {
		b.Run(r.name, func(b *testing.B) {
			rec, err := Decode([]byte(r.text))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(r.text)))
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				if out, err = AppendEncode(out[:0], rec); err != nil {
					b.Fatal(err)
				}
			}
			var v flat
			var m map[string]any
			if json.Unmarshal([]byte(r.text), &v) != nil || stdjson.Unmarshal([]byte(r.text), &m) != nil {
				b.Fatal("the record is no JSON")
			}
			ratio(b, "x-valid", func() { _ = jsontext.Value(out).IsValid() })
			ratio(b, "x-struct", func() { _, _ = json.Marshal(&v) })
			ratio(b, "x-map", func() { _, _ = stdjson.Marshal(m) })
		})
	}
}
