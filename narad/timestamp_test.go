package narad

import (
	"testing"
	"time"
)

// TestTimestamps follows what is known of the public client (facts §3.1): it takes
// much more than RFC 3339, and a host must not write more than RFC 3339 in UTC.
func TestTimestamps(t *testing.T) {
	const refused, client, host = 0, 1, 2
	for _, tc := range []struct {
		text  string
		taken int // by nobody, by a client, by both
	}{
		{"2026-08-05T00:00:00Z", host},
		{"2026-08-05T00:00:00.1Z", host},
		{"2026-08-05T23:59:59.123456789012Z", host},
		{"2026-08-05T00:00:00+00:00", host},
		{"2026-08-05T00:00:00-00:00", host},
		{"2024-02-29T12:00:00Z", host},

		{"2026-08-05T00:00:00+02:00", client},
		{"2026-08-05T00:00:00-0330", client},
		{"2026-08-05t00:00:00z", client},
		{"2026-08-05 00:00:00", client},
		{"2026-08-05 00:00:00.5Z", client},
		{"2026-08-05T00:00:00", client},
		{"2026-08-05T00:00", client},
		{"2026-08-05T24:00:00Z", client},
		{"2026-02-30T00:00:00Z", client},
		{"2026-08-05", client},
		{"2026-08", client},
		{"2026", client},
		{"1", client},
		{"99", client},
		{"foo 2026", client},
		{"Aug 5 2026", client},
		{"8/5/2026", client},
		{"Wed, 05 Aug 2026 00:00:00 GMT", client},

		{"", refused},
		{"soon", refused},
		{"2026-08-05T23:59:60Z", refused},
		{"2026-08-05T25:00:00Z", refused},
		{"2026-08-05T00:60:00Z", refused},
		{"2026-08-32T00:00:00Z", refused},
		{"2026-13-05T00:00:00Z", refused},
		{"2026-00-05T00:00:00Z", refused},
		{" 2026-08-05T00:00:00Z", refused},
		{"2026-08-05T00:00:00Z ", refused},
		{"2026-08-05T00:00:00Zulu", refused},
		{"2026-08-05T00:00:00Z 5", refused},
		{"20260805T000000Z", refused},
		{"2026-08-05T0:00:00.5Z", refused},
		{"2026-08-05T00:00:00.Z", refused},
		{"2026-08-05T00:00:00,5Z", refused},
		{"2026-08-05T00:00:00+0", refused},
		{"2026-08-05T", refused},
		{"2026-08-05T00:00:00Z\x00", refused},
	} {
		for _, d := range decoders {
			text := example(t, TypeRunStarted).with("timestamp", Quote(tc.text).String()).text()
			_, err := d.Decode([]byte(text))
			want := tc.taken == host || tc.taken == client && !d.Strict
			if (err == nil) != want || err != nil && refusalOf(err).Path != "/timestamp" {
				t.Errorf("%q, strict %v: got %v, want taken %v", tc.text, d.Strict, err, want)
			}
		}
		rec := mustDecode(t, Decoder{}, example(t, TypeRunStarted).text()).(*RunStarted)
		rec.Timestamp = tc.text
		if _, err := Encode(rec); (err == nil) != (tc.taken == host) {
			t.Errorf("encode %q: got %v, want taken %v", tc.text, err, tc.taken == host)
		}
	}
}

// TestOptionalTimestamps: a client goes on without one that it cannot read.
func TestOptionalTimestamps(t *testing.T) {
	text := example(t, TypeRunPaused).with("retryAt", `"tomorrow"`).text()
	if rec := mustDecode(t, Decoder{}, text).(*RunPaused); rec.RetryAt != "" {
		t.Errorf("retryAt is %q", rec.RetryAt)
	}
	if _, err := DecodeStrict([]byte(text)); refusalOf(err).Path != "/retryAt" {
		t.Errorf("strict: got %v", err)
	}
}

func TestTimestamp(t *testing.T) {
	at := time.Date(2027, 3, 14, 1, 59, 26, 535_897_932, time.FixedZone("x", 2*60*60))
	if got, want := Timestamp(at), "2027-03-13T23:59:26.535Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !isUTC(Timestamp(at)) {
		t.Errorf("a host may not write %s", Timestamp(at))
	}
}
