package decide_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// hashOf is the hash of a client's command, in hexadecimal.
func hashOf(t *testing.T, c decide.Command) string {
	t.Helper()
	sum, ok := decide.ContentHash(c)
	if !ok {
		t.Fatalf("%T has no hash", c)
	}
	return hex.EncodeToString(sum[:])
}

func empty() *string { return new(string) }

// R21: hashes are stored, and so for ever. If one of these changes, a client that tells
// its command again after an upgrade is answered with a conflict.
func TestContentHashesAreForEver(t *testing.T) {
	for _, tt := range []struct {
		command decide.Command
		want    string
	}{
		{decide.Create{Payload: facts.Created{
			WorkspaceID: "w", Cwd: "/work", ClientKind: "cli", Title: "t", Agent: "a", ClientExecutorID: "e", ParentSessionID: "p",
		}}, "dd43a7fc31e551ec0cf53a846b7b7b2d3b3c09254957f02e114525511603e1e9"},
		{decide.Archive{}, "e6fcc1153aceaed85fa6cf78c9dae329874f8f181bbd38a33dd217381fdba541"},
		{decide.Restore{}, "9dde560388b98dcdec3f5f7ba19433218495a7bf53553c0465559e0dd6a5e7bf"},
		{decide.Message{Content: "hello"}, "5cbb77ffd22e42fae6b0afc5b15913a420b3e7f0e5164000e3c04a38b01451b9"},
		{decide.Message{MessageID: "m", Content: "hé\u2028", WhenBusy: decide.WhenBusySteer, AttachmentIDs: []string{"a", "b"}}, "6b9e86c07c122b71982d1b13a332bbd5b3840138dcba97781e3ca1497debbcb6"},
		{decide.Stop{RootRunID: "r", Reason: "why"}, "1c9f0c7fad703e7b1e71c0e7eff755736c53030fba0079527e1d161b2aede3f1"},
		{decide.Release{}, "0ecd98ec973202359d4ea8b253b2d81803b9cba78a948e482b4ba1a6f6c71282"},
		{decide.Withdraw{RunID: "r"}, "ef73559bc6c919f3e37e7aead248e15765fe84c62f60035968e9f8d8bbd441e0"},
		{decide.Redact{MessageID: "m", Reason: "why", DisplayReplacement: empty()}, "7573d83b2c02f9188ef09eda82f3111cecc2a7499d169d7a67a4f3034e11f6f6"},
		{decide.Resolve{InterruptID: "i", Decision: "approve"}, "f7fff78611c772dda6ad0cee79fd9565b4bae35814a33cf7de5320e62c34b6ef"},
		{decide.Resolve{
			InterruptID: "i", Decision: "answer", Reason: "why", ExpectedRevision: 7, Members: []string{"a", "b"},
			Answers: []decide.QuestionAnswer{{Options: []int{0, 2}}, {}, {Text: "own"}},
		}, "e067f31cfb9f15b797b3e4422b540eef02e45b2690fe8c9d3250464e3ff3d6f4"},
		{decide.StartRootRun{Text: "go", WorkspaceID: "default"}, "f9b59195e46ba4f492fedeabdcf102a1eb4649f8eba909ccf3a298ff409a58e6"},
		{decide.StartRootRun{
			Text: "go", WhenBusy: decide.WhenBusyReject, WorkspaceID: "w", Cwd: "/work", Title: "t", Agent: "a", ClientExecutorID: "e",
		}, "9fcfeb46378de3094ec114b060aef3584bae03b0c47793ec535f737dc50ef371"},
		{decide.SubmitMessage{RunID: "r", Text: "more", Sensitivity: "secret"}, "490e4396fa29ddb63f23eb8845ee8e47c8f323c48fd08a6713fb97ff4918b6bc"},
		{decide.CancelRun{RunID: "r", Reason: "why"}, "1a8cfd958be5c104abecee8e6193a48ce4a4656bc8c34c39d01327b497cb27a6"},
		{decide.ResolveApproval{RunID: "r", ApprovalID: "i", Decision: "approve", Scope: "edit x"}, "479b317ae1c500d2c1f7b48ea719046ae450aeeb7c90550bcb9869ec593c4d29"},
		{decide.Tell{To: "two-1a2b3c", Content: "hello", Ask: true}, "c29f1ed5d191cd40a5436f27aba7df9b8eb56ff282a7160c9e628fdcac57011b"},
		{decide.AnswerAsk{AskID: "a", Content: "yes"}, "90b0da58193f9e9f99e16b6c5ffa78142e14ba9020b2c3535463b092fd717a5d"},
		{decide.Publish{Extension: "lab/review", Name: "progress", Payload: narad.Raw(`{"left":3}`)}, "6d63c7105c92874ad66481cba42f19767ddb716f6443b838b2e4d54fbb13f11b"},
		{decide.DecidePermission{InterruptID: "i", RequestID: "r", Decision: "allow", Remember: "session", Reason: "why"}, "d42b4335adf84b819f2afedf09a2e33b0e0f82446d74e615819573c07fd4ba37"},
		{decide.AnswerQuestion{InterruptID: "i", Answers: []decide.QuestionAnswer{{Options: []int{0, 2}}, {Text: "own"}}}, "1504a968e95848e58a74dbdff5c9e17bc797a4ac57c31da0cf070c80f8746d7e"},
		{decide.AnswerQuestion{InterruptID: "i", Dismiss: true}, "ba5d5d5c72c529969278b42b446aeb82a9a8154012459526b0a1cb4edcb7d010"},
	} {
		if got := hashOf(t, tt.command); got != tt.want {
			t.Errorf("%#v\ngot  %s\nwant %s", tt.command, got, tt.want)
		}
	}
}

// Whatever a client can say differently is another command; what only the host says, or
// says the same in other words, is none.
func TestContentHashTellsCommandsApart(t *testing.T) {
	text := func(s string) *string { return &s }
	seen := map[string]decide.Command{}
	for _, c := range []decide.Command{
		decide.Create{}, decide.Archive{}, decide.Restore{}, decide.Message{}, decide.Stop{}, decide.Release{},
		decide.Withdraw{}, decide.Redact{}, decide.Resolve{},
		decide.Retitle{}, decide.Move{}, decide.ChooseModel{}, decide.ChooseVariant{}, decide.ChooseStyle{},
		decide.SetPosture{}, decide.SetWarming{}, decide.MarkViewed{}, decide.Branch{},
		decide.StartRootRun{}, decide.SubmitMessage{}, decide.CancelRun{}, decide.ResolveApproval{},
		decide.SubmitMessage{RunID: "r", Text: "x"}, decide.StartRootRun{Text: "x"}, decide.CancelRun{RunID: "r", Reason: "x"},
		decide.Message{MessageID: "ab", Content: "c"}, decide.Message{MessageID: "a", Content: "bc"},
		decide.Publish{}, decide.Publish{Extension: "a/b", Name: "c"},
		decide.Message{MessageID: "abc"}, decide.Message{Content: "abc"}, decide.Message{Content: "\x00"},
		decide.Redact{DisplayReplacement: text("")}, decide.Redact{DisplayReplacement: text("x")},
		decide.Resolve{Members: []string{"a", "b"}}, decide.Resolve{Members: []string{"ab"}},
		decide.Resolve{Members: []string{"a", "b", ""}}, decide.Resolve{Members: []string{"b", "a"}},
		decide.Resolve{Answers: []decide.QuestionAnswer{{}}}, decide.Resolve{Answers: []decide.QuestionAnswer{{}, {}}},
		decide.Resolve{Answers: []decide.QuestionAnswer{{Options: []int{0, 1}}}},
		decide.Resolve{Answers: []decide.QuestionAnswer{{Options: []int{0}}, {Options: []int{1}}}},
		decide.Resolve{Answers: []decide.QuestionAnswer{{Text: "0"}}},
		decide.DecidePermission{}, decide.DecidePermission{Decision: "a"}, decide.DecidePermission{Reason: "a"},
		decide.AnswerQuestion{}, decide.AnswerQuestion{Dismiss: true}, decide.AnswerQuestion{Answers: []decide.QuestionAnswer{{}}},
		decide.AnswerQuestion{Answers: []decide.QuestionAnswer{{Options: []int{0}}, {}}},
	} {
		if other, twice := seen[hashOf(t, c)]; twice {
			t.Errorf("%#v and %#v have one hash", c, other)
		}
		seen[hashOf(t, c)] = c
	}
	if hashOf(t, decide.Message{WhenBusy: decide.WhenBusyQueue}) != hashOf(t, decide.Message{}) {
		t.Error("to queue is another command when it is said")
	}
	own := decide.Create{Payload: facts.Created{RequiredProfiles: []string{"p"}, Mappings: facts.Mappings{Narya: 1}}}
	if hashOf(t, own) != hashOf(t, decide.Create{}) {
		t.Error("what the host adds to a new session is part of its hash")
	}
	if _, ok := decide.ContentHash(decide.Say{Text: "x"}); ok {
		t.Error("an agent's record has a hash")
	}
	if _, ok := decide.ContentHash(nil); ok {
		t.Error("nothing has a hash")
	}
}

// A field that a command gets later must be part of its hash: no two contents are one.
func TestContentHashHoldsEveryField(t *testing.T) {
	hostsOwn := map[string]bool{"RequiredProfiles": true, "Mappings": true, "IntercomName": true, "Branch": true, "Session": true}
	for _, c := range []decide.Command{
		decide.Create{}, decide.Message{}, decide.Stop{}, decide.Withdraw{}, decide.Redact{}, decide.Resolve{},
		decide.StartRootRun{}, decide.SubmitMessage{}, decide.CancelRun{}, decide.ResolveApproval{}, decide.Publish{},
		decide.Retitle{}, decide.Move{}, decide.ChooseModel{}, decide.ChooseVariant{}, decide.ChooseStyle{},
		decide.SetPosture{}, decide.SetWarming{}, decide.Branch{},
		decide.DecidePermission{}, decide.AnswerQuestion{},
	} {
		none := hashOf(t, c)
		whole := reflect.New(reflect.TypeOf(c)).Elem()
		fields := whole
		if payload := whole.FieldByName("Payload"); payload.IsValid() && payload.Kind() == reflect.Struct {
			fields = payload
		}
		for i := range fields.NumField() {
			name := fields.Type().Field(i).Name
			if hostsOwn[name] {
				continue
			}
			fill(t, fields.Field(i))
			if hashOf(t, whole.Interface().(decide.Command)) == none {
				t.Errorf("%T: the hash does not depend on %s", c, name)
			}
			fields.Field(i).SetZero()
		}
	}
}

// fill gives a field of a command another value than its zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}
