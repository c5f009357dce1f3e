package naradhttp_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/narad"
)

// The cursor of a list means something to the host that gave it, for the same list with
// the same filters, and to nobody else. What it is refused for is not told apart.
func TestCursorsOfListsAreTheHostsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, other := start(t, rigOptions{agent: asks, engine: onDisk(t)}), start(t, rigOptions{agent: asks, engine: onDisk(t)})
		for _, r := range []*rig{r, other} {
			for _, id := range []string{"a", "b", "c"} {
				r.create(id)
				r.say(id, "write")
			}
		}
		synctest.Wait()
		lists := []string{"/sessions?", "/sessions?state=running&", "/sessions?workspaceId=default&", "/interrupts?", "/interrupts?sessionId=a&"}
		cursors := map[string]string{}
		for _, list := range lists[:4] {
			cursors[list] = r.nextCursor(list + "limit=1")
		}
		for _, list := range lists {
			for of, cursor := range cursors {
				if of == list {
					r.want(r.get(list+"limit=1&cursor="+cursor), 200)
					continue
				}
				r.wantNoList(list, cursor)
			}
			r.wantNoList(list, other.nextCursor("/sessions?limit=1"))
			r.wantNoList(list, other.nextCursor("/interrupts?limit=1"))
		}
	})
}

func TestAlteredCursorsListNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{engine: onDisk(t)})
		r.create("a")
		r.create("b")
		cursor := r.nextCursor("/sessions?limit=1")
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Fatalf("cursor %q: %v", cursor, err)
		}
		for i := range raw {
			altered := slices.Clone(raw)
			altered[i] ^= 1
			r.wantNoList("/sessions?", base64.RawURLEncoding.EncodeToString(altered))
		}
		for i := range raw {
			r.wantNoList("/sessions?", base64.RawURLEncoding.EncodeToString(raw[:i+1])[:base64.RawURLEncoding.EncodedLen(i)]+"A")
		}
		for _, made := range []string{
			"nonsense", "=", cursor + "=", cursor + "A", cursor + cursor, "%00", "%20" + cursor,
			hex.EncodeToString([]byte{0x00}), hex.EncodeToString([]byte{0xff}), // what the engine itself would take
			base64.RawURLEncoding.EncodeToString(make([]byte, 16)), base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
			strings.Repeat("A", 60<<10),
		} {
			r.wantNoList("/sessions?", made)
		}
		r.want(r.get("/sessions?limit=1&cursor="+cursor), 200)
	})
}

// The page of a reader who may see little ends at what he may not see, and the cursor
// does not tell him about it.
func TestCursorsTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{engine: onDisk(t)})
		for _, id := range []string{"first", "hidden-name", "last"} {
			r.want(r.post("/sessions", `{"sessionId":"`+id+`","workspaceId":"`+id[:1]+`"}`), 201)
		}
		r.token = r.newToken("l", access.Grant{Roles: []access.Role{access.Observe}, Workspaces: []string{"l", "f"}})
		page := r.want(r.get("/sessions?limit=2"), 200)
		cursor, ok := narad.Raw(page.body).Field("nextCursor").IsString()
		if !ok {
			t.Fatalf("no nextCursor: %s", page)
		}
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := r.journal.Rows(t.Context(), journal.Sessions{NewestFirst: true}, journal.RowPage{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		place, err := hex.DecodeString(rows.Next)
		if err != nil || len(place) == 0 {
			t.Fatalf("the engine's place: %q, %v", rows.Next, err)
		}
		if text := string(raw); strings.Contains(text, string(place)) || strings.Contains(text, rows.Next) || strings.Contains(text, "hidden") {
			t.Errorf("the cursor %q shows the place %q", raw, rows.Next)
		}
	})
}

// nextCursor is that of a list that has more.
func (r *rig) nextCursor(list string) string {
	r.t.Helper()
	page := r.want(r.get(list), 200)
	cursor := page.field("nextCursor")
	if cursor == "" {
		r.t.Fatalf("no nextCursor: %s", page)
	}
	return cursor
}

func (r *rig) wantNoList(list, cursor string) {
	r.t.Helper()
	got := r.get(list + "cursor=" + cursor)
	r.wantProblem(got, 400, "cursor_invalid")
	if strings.Contains(got.body, `"items"`) {
		r.t.Errorf("cursor %.80q of %s: got %s", cursor, list, got)
	}
}

func onDisk(t *testing.T) journal.Journal {
	t.Helper()
	j, err := pebble.Open(t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}
