package naradhttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// keeping are the options of a host that keeps bytes in a directory, at most 1 MiB each.
func keeping(t *testing.T, dir string, a acts) rigOptions {
	t.Helper()
	store, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return rigOptions{agent: a, host: host.Options{Blobs: store, MaxAttachment: 1 << 20, MaxArtifact: 4 << 20}}
}

// kept is a bubble with a session s1 and its directory of bytes.
func kept(t *testing.T, a acts, test func(t *testing.T, r *rig, dir string)) {
	t.Helper()
	dir := t.TempDir()
	bubble(t, keeping(t, dir, a), func(t *testing.T, r *rig) {
		r.create("s1")
		test(t, r, dir)
	})
}

// upload sends an attachment.
func (r *rig) upload(session, query, mediaType string, content []byte) reply {
	r.t.Helper()
	request := r.request("POST", "/sessions/"+session+"/attachments"+query, string(content))
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	return r.send(request)
}

func (r *rig) getWith(path string, header map[string]string) reply {
	r.t.Helper()
	request := r.request("GET", path, "")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return r.send(request)
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// blobsIn returns how many contents a directory holds, half written ones too.
func blobsIn(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// §9.5: the bytes go over HTTP and come back as they were; the facts tell of them alone.
func TestAttachmentsComeBack(t *testing.T) {
	content := bytes.Repeat([]byte("binary \x00\xff secret-bytes "), 20_000) // more than is checked at once
	var told agent.Message
	var read []byte
	var readErr error
	reads := func(ctx context.Context, h agent.Handle) agent.Ending {
		told = h.Info().Prompt
		for _, a := range told.Attachments {
			var body io.ReadCloser
			if body, readErr = a.Open(); readErr == nil {
				read, readErr = io.ReadAll(body)
				_ = body.Close()
			}
		}
		return agent.Ending{}
	}
	kept(t, reads, func(t *testing.T, r *rig, _ string) {
		a := r.want(r.upload("s1", "?name=sh%C3%B6n.bin", "application/x-thing; v=\"1\"", content), 201)
		id := a.field("attachmentId")
		if a.field("state") != "ready" || a.field("digest") != digest(content) || a.field("bytes") != fmt.Sprint(len(content)) ||
			a.header.Get("ETag") != `"`+digest(content)+`"` || a.field("mediaType") != "application/x-thing; v=1" {
			t.Errorf("got %s, ETag %s", a, a.header.Get("ETag"))
		}
		got := r.want(r.get("/sessions/s1/attachments/"+id), 200)
		if got.body != strings.TrimSuffix(string(content), "\n") {
			t.Errorf("%d bytes came back, want the %d that went", len(got.body), len(content))
		}
		for name, want := range map[string]string{
			"Content-Type": "application/x-thing; v=1", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "sandbox; default-src 'none'", "Content-Disposition": "attachment; filename*=utf-8''sh%C3%B6n.bin",
			"Content-Length": fmt.Sprint(len(content)), "ETag": `"` + digest(content) + `"`, "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: got %q, want %q", name, got.header.Get(name), want)
			}
		}
		r.want(r.post("/commands/message", `{"sessionId":"s1","content":"look","attachmentIds":["`+id+`"]}`), 202)
		synctest.Wait()
		if len(told.Attachments) != 1 || told.Attachments[0].Name != "shön.bin" || readErr != nil || !bytes.Equal(read, content) {
			t.Errorf("the agent got %+v, read %d bytes, %v", told, len(read), readErr)
		}
		events := r.want(r.get("/sessions/s1/events"), 200).body
		if strings.Contains(events, "secret-bytes") || strings.Contains(events, base64.StdEncoding.EncodeToString(content[:30])) {
			t.Error("the bytes stand in a fact")
		}
		for _, want := range []string{`"type":"attachment.added"`, `"type":"attachment.ready"`, `"attachmentIds":["` + id + `"]`} {
			if !strings.Contains(events, want) {
				t.Errorf("no %s in the history", want)
			}
		}
		list := r.want(r.get("/sessions/s1/attachments"), 200)
		if !strings.Contains(list.body, id) || strings.Contains(r.get("/sessions/s1/artifacts").body, id) {
			t.Errorf("lists: %s", list)
		}
	})
}

// What is uploaded is offered as a file, whatever it calls itself.
func TestNoStoredScripts(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, _ string) {
		for _, media := range []string{"text/html", "image/svg+xml", "text/xml", "application/javascript"} {
			a := r.want(r.upload("s1", "?name=a.html", media, []byte("<script>alert(1)</script>")), 201)
			got := r.want(r.get("/sessions/s1/attachments/"+a.field("attachmentId")), 200)
			if !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") ||
				!strings.HasPrefix(got.header.Get("Content-Security-Policy"), "sandbox;") || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: headers %v", media, got.header)
			}
		}
	})
}

func TestUploadsThatAreRefused(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		for name, path := range map[string]string{
			"a path": "?name=..%2Fx", "another path": "?name=a%5Cb", "a step": "?name=..", "a line": "?name=a%0Ab",
			"a long name": "?name=" + strings.Repeat("x", 256), "turned text": "?name=a%E2%80%AEgpj.exe", "an id": "?commandId=a%20b",
		} {
			if got := r.upload("s1", path, "", []byte("x")); got.status != 400 || got.field("code") != "invalid_field" {
				t.Errorf("%s: got %s", name, got)
			}
		}
		for _, media := range []string{"x", "a/b; c", "*/*", "a/b\r\nX: y", strings.Repeat("a", 300) + "/b"} {
			request := r.request("POST", "/sessions/s1/attachments", "x")
			request.Header["Content-Type"] = []string{media}
			if strings.Contains(media, "\n") {
				continue // no client of ours can send it
			}
			r.wantProblem(r.send(request), 400, "invalid_field")
		}
		r.wantProblem(r.upload("other", "", "", []byte("x")), 404, "not_found")
		r.wantProblem(r.upload("s1", "", "", make([]byte, 1<<20+1)), 413, "body_too_large")
		if got := blobsIn(t, dir); got != 0 {
			t.Errorf("%d contents are kept, want none", got)
		}
		if got := r.get("/sessions/s1/events").body; strings.Contains(got, "attachment.ready") {
			t.Errorf("facts of what was refused: %s", got)
		}
		r.want(r.upload("s1", "", "", make([]byte, 1<<20)), 201)
		r.want(r.post("/sessions/s1/archive", ""), 200)
		r.wantProblem(r.upload("s1", "", "", []byte("x")), 409, "session_busy")
	})
}

// An upload that breaks off, or is another than was announced, is recorded as failed, and
// nothing is kept.
func TestUploadsThatFail(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		endless := r.request("POST", "/sessions/s1/attachments?name=big", "")
		endless.Body, endless.ContentLength = io.NopCloser(io.LimitReader(zeros{}, 3<<20)), -1
		r.wantProblem(r.send(endless), 413, "body_too_large")

		other := r.request("POST", "/sessions/s1/attachments?name=other", "these bytes")
		sum := sha256.Sum256([]byte("those bytes"))
		other.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		r.wantProblem(r.send(other), 422, "digest_mismatch")

		cut := r.request("POST", "/sessions/s1/attachments?name=cut", "")
		cut.Body, cut.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{})), -1
		if response, err := r.http.Do(cut); err == nil {
			_ = response.Body.Close()
		}
		synctest.Wait()
		events := r.get("/sessions/s1/events").body
		for _, code := range []string{"too_large", "digest_mismatch", "incomplete"} {
			if strings.Count(events, `"code":"`+code+`"`) != 1 {
				t.Errorf("%s stands %d times in %s", code, strings.Count(events, `"code":"`+code+`"`), events)
			}
		}
		if got := blobsIn(t, dir); got != 0 {
			t.Errorf("%d contents are kept, want none", got)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the line is dead") }

// R21: the same command again is the same attachment.
func TestUploadOnce(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, _ string) {
		first := r.want(r.upload("s1", "?commandId=c1&name=a", "", []byte("x")), 201)
		if again := r.want(r.upload("s1", "?commandId=c1&name=a", "", []byte("x")), 201); again.field("attachmentId") != first.field("attachmentId") {
			t.Errorf("got %s, want %s", again, first)
		}
		other := r.upload("s1", "?commandId=c1&name=a", "", []byte("y"))
		if r.wantProblem(other, 409, "command_id_used"); other.field("attachmentId") != first.field("attachmentId") {
			t.Errorf("got %s, want the first effect named", other)
		}
		if empty := r.want(r.upload("s1", "", "", nil), 201); empty.field("bytes") != "0" {
			t.Errorf("got %s, want that there are 0 bytes", empty)
		}
		if n := strings.Count(r.get("/sessions/s1/events").body, "attachment.ready"); n != 2 {
			t.Errorf("%d attachments, want 2", n)
		}
	})
}

func TestRemoveAttachment(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		id := r.want(r.upload("s1", "", "", []byte("x")), 201).field("attachmentId")
		path := "/sessions/s1/attachments/" + id
		r.want(r.send(r.request("DELETE", path, "")), 204)
		r.want(r.send(r.request("DELETE", path, "")), 204)
		r.wantProblem(r.get(path), 409, "attachment_removed")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"x","attachmentIds":["`+id+`"]}`), 422, "rejected")
		r.wantProblem(r.send(r.request("DELETE", path+"x", "")), 404, "not_found")
		synctest.Wait()
		if got := blobsIn(t, dir); got != 0 {
			t.Errorf("%d contents are kept, want none", got)
		}
	})
}

// A message that waits keeps its attachments.
func TestAttachmentOfAWaitingMessage(t *testing.T) {
	kept(t, waits, func(t *testing.T, r *rig, _ string) {
		id := r.want(r.upload("s1", "", "", []byte("x")), 201).field("attachmentId")
		r.say("s1", "first")
		r.want(r.post("/commands/message", `{"sessionId":"s1","content":"x","attachmentIds":["`+id+`"]}`), 202)
		r.wantProblem(r.send(r.request("DELETE", "/sessions/s1/attachments/"+id, "")), 409, "attachment_in_use")
	})
}

// Bytes are somebody's: another session's id, or another workspace's token, finds none.
func TestContentOfAnotherSession(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, _ string) {
		id := r.want(r.upload("s1", "", "", []byte("x")), 201).field("attachmentId")
		r.create("s2")
		r.wantProblem(r.get("/sessions/s2/attachments/"+id), 404, "not_found")
		r.wantProblem(r.get("/sessions/s2/artifacts/"+id), 404, "not_found")
		r.wantProblem(r.get("/sessions/s1/artifacts/"+id), 404, "not_found")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s2","content":"x","attachmentIds":["`+id+`"]}`), 422, "rejected")
		admin := r.token
		for _, tt := range []struct {
			grant       access.Grant
			read, write int
		}{
			{access.Grant{Roles: []access.Role{access.Observe}}, 200, 403},
			{access.Grant{Roles: []access.Role{access.Drive}}, 403, 201},
			{access.Grant{Roles: []access.Role{access.Admin}, Workspaces: []string{"elsewhere"}}, 404, 404},
			{access.Grant{Roles: []access.Role{access.Decide, access.Trace}}, 403, 403},
		} {
			r.token = r.newToken(fmt.Sprint(tt.grant), tt.grant)
			if got := r.get("/sessions/s1/attachments/" + id); got.status != tt.read {
				t.Errorf("%v reads: got %s, want %d", tt.grant, got, tt.read)
			}
			if got := r.upload("s1", "", "", []byte("y")); got.status != tt.write {
				t.Errorf("%v writes: got %s, want %d", tt.grant, got, tt.write)
			}
			r.token = admin
		}
	})
}

func TestRanges(t *testing.T) {
	content := make([]byte, 700_000)
	for i := range content {
		content[i] = byte(i % 251)
	}
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		a := r.want(r.upload("s1", "", "", content), 201)
		path, size := "/sessions/s1/attachments/"+a.field("attachmentId"), len(content)
		for _, tt := range []struct {
			header      string
			first, last int // -1: all
		}{
			{"bytes=0-0", 0, 0}, {"bytes=10-19", 10, 19}, {"bytes=699999-", 699_999, 699_999}, {"bytes=-1", 699_999, 699_999},
			{"bytes=-9999999", 0, size - 1}, {"bytes=100-9999999", 100, size - 1}, {"bytes=300000-", 300_000, size - 1},
			{"bytes=5-2", -1, 0}, {"bytes=0-1,5-6", -1, 0}, {"lines=0-1", -1, 0}, {"bytes=x", -1, 0}, {"bytes=", -1, 0}, {"bytes=-", -1, 0},
		} {
			got := r.getWith(path, map[string]string{"Range": tt.header})
			if tt.first < 0 {
				if got.status != 200 || len(got.body) != size {
					t.Errorf("%s: got %d with %d bytes, want all", tt.header, got.status, len(got.body))
				}
				continue
			}
			want := string(content[tt.first : tt.last+1])
			if got.status != 206 || got.body != strings.TrimSuffix(want, "\n") ||
				got.header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", tt.first, tt.last, size) {
				t.Errorf("%s: got %d, %q with %d bytes", tt.header, got.status, got.header.Get("Content-Range"), len(got.body))
			}
		}
		for _, none := range []string{"bytes=700000-", "bytes=-0"} {
			r.wantProblem(r.getWith(path, map[string]string{"Range": none}), 416, "range_not_satisfiable")
		}
		tag := a.header.Get("ETag")
		r.want(r.getWith(path, map[string]string{"If-None-Match": tag}), 304)
		r.want(r.getWith(path, map[string]string{"Range": "bytes=0-0", "If-Range": tag}), 206)
		r.want(r.getWith(path, map[string]string{"Range": "bytes=0-0", "If-Range": `"other"`}), 200)
		head := r.send(r.request("HEAD", path, ""))
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(size) {
			t.Errorf("HEAD: %d, %v", head.status, head.header)
		}

		damage(t, dir)
		// The first byte of a part goes out only when the whole was checked.
		r.wantProblem(r.getWith(path, map[string]string{"Range": "bytes=0-9"}), 500, "content_damaged")
		response, err := r.http.Do(r.request("GET", path, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err == nil || len(got) >= size {
			t.Errorf("damaged bytes: got %d of %d, %v, want a cut", len(got), size, err)
		}
	})
}

// damage changes one byte of the one content in a directory.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "??", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("contents: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(files[0], data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Small damaged bytes are an error at once.
func TestDamagedContent(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		id := r.want(r.upload("s1", "", "", []byte("some bytes")), 201).field("attachmentId")
		damage(t, dir)
		r.wantProblem(r.get("/sessions/s1/attachments/"+id), 500, "content_damaged")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		r.wantProblem(r.get("/sessions/s1/attachments/"+id), 500, "content_damaged")
	})
}

// R7, field case 76: a response that no event can hold becomes an artifact, with a
// preview in the fact.
func TestLargeResponseIsAnArtifact(t *testing.T) {
	text := strings.Repeat("täxt ", 400_000)
	object := `{"n":1.10,"list":[` + strings.Repeat(`"x",`, 200_000) + `"y"]}`
	large := func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, response := range []narad.Raw{narad.Quote(text), narad.Raw(object)} {
			id, err := h.StartTool(ctx, agent.Tool{Name: "read"})
			if err == nil {
				err = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: response})
			}
			if err != nil {
				return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
			}
		}
		return agent.Ending{}
	}
	kept(t, large, func(t *testing.T, r *rig, _ string) {
		r.say("s1", "go")
		synctest.Wait()
		var found []narad.Raw
		events, _ := narad.Raw(r.get("/sessions/s1/events").body).Field("events").Elements()
		for _, e := range events {
			switch kind, _ := e.Field("type").IsString(); kind {
			case "tool.call.finished":
				found = append(found, e.Field("response"))
			case "run.finished":
				if ids, _ := e.Field("artifactIds").Elements(); len(ids) != 2 {
					t.Errorf("the run finished with %s", e)
				}
			case "run.error":
				t.Fatalf("%s", e)
			}
			if len(e) > 20_000 {
				t.Errorf("a fact of %d bytes", len(e))
			}
		}
		if len(found) != 2 {
			t.Fatalf("%d responses, want 2", len(found))
		}
		for i, want := range []struct{ media, content string }{{"text/plain; charset=utf-8", text}, {"application/json", object}} {
			id, _ := found[i].Field("artifactId").IsString()
			preview, _ := found[i].Field("preview").IsString()
			if !strings.HasPrefix(want.content, preview) || preview == "" || string(found[i].Field("bytes")) != fmt.Sprint(len(want.content)) {
				t.Errorf("response %d: %s", i, found[i])
			}
			got := r.want(r.get("/sessions/s1/artifacts/"+id), 200)
			if got.body != want.content || got.header.Get("Content-Type") != want.media {
				t.Errorf("artifact %d: %d bytes of %s, want %d of %s", i, len(got.body), got.header.Get("Content-Type"), len(want.content), want.media)
			}
		}
	})
}

// A disk without room refuses what comes, and says so.
func TestUploadToAFullDisk(t *testing.T) {
	free := uint64(1 << 40)
	o := keeping(t, t.TempDir(), speaks)
	o.journal = journal.Options{Reserve: 1 << 30, Free: func() (uint64, error) { return free, nil }}
	bubble(t, o, func(t *testing.T, r *rig) {
		r.create("s1")
		id := r.want(r.upload("s1", "", "", []byte("before")), 201).field("attachmentId")
		for _, left := range []uint64{1<<30 + 10, 1 << 29} {
			free = left
			synctestSleep()
			r.wantProblem(r.upload("s1", "", "", []byte("more than ten bytes")), http.StatusInsufficientStorage, "storage_full")
			r.want(r.get("/sessions/s1/attachments/"+id), 200)
		}
		free = 1 << 40
		synctestSleep()
		r.want(r.upload("s1", "", "", []byte("more than ten bytes")), 201)
	})
}

// Bytes are removed when the last session that names them is gone, and no earlier.
func TestBytesOfDeletedSessions(t *testing.T) {
	kept(t, speaks, func(t *testing.T, r *rig, dir string) {
		r.create("s2")
		shared := r.want(r.upload("s1", "", "", []byte("shared")), 201).field("digest")
		id := r.want(r.upload("s2", "", "", []byte("shared")), 201).field("attachmentId")
		r.want(r.upload("s1", "", "", []byte("alone")), 201)
		r.want(r.send(r.request("DELETE", "/sessions/s1", "")), 204)
		synctest.Wait()
		if got := blobsIn(t, dir); got != 1 {
			t.Errorf("%d contents are kept, want 1", got)
		}
		if got := r.want(r.get("/sessions/s2/attachments/"+id), 200); got.body != "shared" || digest([]byte(got.body)) != shared {
			t.Errorf("got %s", got)
		}
		r.wantProblem(r.get("/sessions/s1/attachments/"+id), 410, "session_deleted")
		r.want(r.send(r.request("DELETE", "/sessions/s2", "")), 204)
		synctest.Wait()
		if got := blobsIn(t, dir); got != 0 {
			t.Errorf("%d contents are kept, want none", got)
		}
	})
}

// synctestSleep lets the host look at the disk again.
func synctestSleep() { <-time.After(2 * time.Second) }
