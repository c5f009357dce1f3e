package narya

import (
	"testing"

	"github.com/mahati-host/mahati/narad"
)

func BenchmarkProjectAndEncode(b *testing.B) {
	fact := in("r", &narad.MessageTextDelta{MessageID: "m", Delta: "The clock is read twice, and the second time "})
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range Mapping1.Project(fact) {
			e.ID = 1796030000000000
			out, _ = AppendEncode(out[:0], e)
		}
	}
	b.SetBytes(int64(len(out)))
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(examples(b)[6])
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}
