package narad

import (
	"reflect"
	"testing"
)

// A Reader reads what a Decoder reads, whatever it read before, and a record is
// nobody's room: it stays as it was.
func TestReader(t *testing.T) {
	for _, d := range decoders {
		r := Reader{Decoder: d}
		type pair struct{ got, want Record }
		var all []pair
		for _, texts := range examples(t) {
			for _, text := range texts {
				o := parseObject(t, text)
				for _, input := range []string{text, text[1:], o.without("protocolVersion").text(), o.without("timestamp").text(), o.reversed().text()} {
					want, wantErr := d.Decode([]byte(input))
					got, err := r.Decode([]byte(input))
					if refusalOf(err) != refusalOf(wantErr) {
						t.Fatalf("strict %v: got %v, want %v\n%s", d.Strict, err, wantErr, input)
					}
					all = append(all, pair{got, want})
				}
			}
		}
		for _, read := range all {
			if !reflect.DeepEqual(read.got, read.want) {
				t.Errorf("strict %v:\ngot  %+v\nwant %+v", d.Strict, read.got, read.want)
			}
		}
	}
}

func (o object) reversed() object {
	var back object
	for i := range o {
		back = append(back, o[len(o)-1-i])
	}
	return back
}
