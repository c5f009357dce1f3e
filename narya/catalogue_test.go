package narya

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestCatalogue: the codes are distinct, in order, of the contract's form, and the four
// that the contract names mean what it says.
func TestCatalogue(t *testing.T) {
	for i, e := range Catalogue() {
		if want := Code(fmt.Sprintf("NRY-%04d", i+1)); e.Code != want {
			t.Errorf("got %s, want %s", e.Code, want)
		}
		if e.Title == "" || len(e.Title) > maxErrorTitle || !strings.HasSuffix(e.When, ".") || e.Status != 0 && (e.Status < 400 || e.Status > 503) {
			t.Errorf("half an entry: %+v", e)
		}
		if data, err := EncodeError(Refuse(e.Code, "")); err != nil || !strings.Contains(string(data), strconv.Quote(e.When)) {
			t.Errorf("%s: %s, %v", e.Code, data, err)
		}
	}
	for code, want := range map[Code]CodeEntry{
		"NRY-0002": {Status: 404, Title: "Session not found"}, "NRY-0012": {Status: 500, Title: "The store refuses writes"},
		"NRY-0018": {Status: 409, Title: "No usable model"}, "NRY-0026": {Status: 409, Title: "Cursor newer than the store"},
	} {
		if got, ok := Lookup(code); !ok || got.Status != want.Status || got.Title != want.Title {
			t.Errorf("%s: got %+v", code, got)
		}
	}
	if _, ok := Lookup("NRY-0000"); ok {
		t.Error("there is a code that the catalogue lacks")
	}
}

// TestDocumentedCatalogue: docs/narya.md has the catalogue as it is.
func TestDocumentedCatalogue(t *testing.T) {
	documented := rows(t, "| code | status |")
	for i, e := range catalogue {
		status := strconv.Itoa(e.Status)
		if e.Status == 0 {
			status = "on a turn alone"
		}
		want := fmt.Sprintf("| `%s` | %s | %s | %s |", e.Code, status, e.Title, e.When)
		if i >= len(documented) || documented[i] != want {
			t.Errorf("docs/narya.md lacks, at its place:\n%s", want)
		}
	}
	if len(documented) != len(catalogue) {
		t.Errorf("docs/narya.md has %d codes of %d", len(documented), len(catalogue))
	}
}

// TestDocumentedEvents: docs/narya.md has a row for each type.
func TestDocumentedEvents(t *testing.T) {
	var first strings.Builder
	for _, row := range rows(t, "| type | when |") {
		cell, _, _ := strings.Cut(row[2:], " |")
		first.WriteString(cell + ", ")
	}
	for _, kind := range Types() {
		if n := strings.Count(first.String(), "`"+string(kind)+"`"); n != 1 {
			t.Errorf("docs/narya.md has %d rows for %s, want 1", n, kind)
		}
	}
}

// rows returns the rows of the table in docs/narya.md whose head begins so.
func rows(t *testing.T, head string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/narya.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n"+head)
	if !found {
		t.Fatalf("docs/narya.md has no table %q", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	return strings.Split(strings.TrimRight(table, "\n"), "\n")[2:]
}
