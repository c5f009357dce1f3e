package narya

import (
	"encoding/hex"
	"strings"
	"testing"
)

// TestV5: the vectors of RFC 9562 (appendix A.4) and of other implementations.
func TestV5(t *testing.T) {
	var dns [16]byte
	data, err := hex.DecodeString("6ba7b8109dad11d180b400c04fd430c8")
	if err != nil {
		t.Fatal(err)
	}
	copy(dns[:], data)
	if got, want := v5(dns, "www.example.com"), "2ed6657d-e927-568b-95e1-2665a8aea6a2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestUUIDs: what is shown for an id is for ever (R5).
func TestUUIDs(t *testing.T) {
	const own = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"
	for _, c := range [][2]string{
		{UUID(KindSession, own), own},
		{UUID(KindSession, strings.ToUpper(own)), v5(namespace, "session:"+strings.ToUpper(own))},
		{UUID(KindSession, "s1"), "04145884-7d41-5cc4-9a06-2c009c45b507"},
		{UUID(KindRun, "r1"), "63644b1d-569e-5f68-b18e-20db590071a1"},
		{UUID(KindInterrupt, "i1"), "2865bdee-61bc-55b6-8417-91c2cca1ceb1"},
		{UUID(KindWorkflow, "w1"), "5a695757-c63f-5b67-95ec-22bba22fe92b"},
		{UUID(KindAsk, "q1"), "6bad65ea-f3c9-5bfa-85b8-bbbe4ea6f218"},
		{LaneID("r1"), "94439874-9af4-5a64-b333-0937a85d81b7"},
		{MainLaneID("s1"), "ff9d312f-1862-557e-a61f-1f843ccb743f"},
		{MessageEntryID("s1", "m1"), "96b847e7-cfa2-5ae1-aee6-941e9c1f78c3"},
		{CallEntryID("c1"), "f5b8b6db-a14b-5083-9ea5-97c8f4096a32"},
		{ResultEntryID("c1"), "22e63a80-0515-59c7-a01c-4c0c8acb2dc1"},
		{MemberPermissionID("i1", "a"), "ad7f352c-5696-56ed-ba11-a8720e0a6395"},
		{LaneID("0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"), "f16e82e2-fb3a-54a9-8a90-c8a02c483741"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
	for _, id := range []string{"", "s", own[:35], own + "0", strings.Replace(own, "-", "_", 1), strings.Replace(own, "0", "g", 1)} {
		if got := UUID(KindSession, id); got == id || !isUUID(got) || got[14] != '5' || !strings.Contains("89ab", got[19:20]) {
			t.Errorf("%q is shown as %s, want a UUIDv5", id, got)
		}
	}
}
