package feed

import (
	"testing"
	"testing/synctest"
	"time"
)

// wake has readers woken.
func wake(p *pace, readers []cursor) {
	p.begin()
	for i := range readers {
		p.woke(&readers[i])
	}
	p.rest(time.Now())
}

// look has readers from one number to another look, once each.
func look(p *pace, readers []cursor) (over int) {
	for i := range readers {
		if p.looked(&readers[i]) {
			over++
		}
	}
	return over
}

func TestACrowdRestsThreeTimesAsLongAsItTookToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all, most = 160, 150
		readers := make([]cursor, all)
		var p pace
		wake(&p, readers)
		time.Sleep(2 * time.Millisecond)
		if over := look(&p, readers[:most-1]) + look(&p, readers[:most-1]); over != 0 {
			t.Errorf("the round is over after %d of %d readers have looked twice", most-1, all)
		}
		if got, want := p.left(time.Now()), maxRest-2*time.Millisecond; got != want {
			t.Errorf("before most have looked: got %v left, want %v", got, want)
		}
		if over := look(&p, readers[most-1:]); over != 1 {
			t.Errorf("the round was over %d times when %d of %d had looked, want once", over, all, all)
		}
		if got, want := p.left(time.Now()), 6*time.Millisecond; got != want {
			t.Errorf("after a round of 2ms: got %v left, want %v", got, want)
		}
		wake(&p, readers)
		time.Sleep(maxRest / 2)
		look(&p, readers)
		if got, want := p.left(time.Now()), maxRest/2; got != want {
			t.Errorf("after a long round: got %v left, want %v: no fact waits for longer than %v", got, want, maxRest)
		}
	})
}

// Only who was woken counts: the others have not looked for long.
func TestNobodyWaitsForStalledReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := make([]cursor, 2*crowd)
		var p pace
		wake(&p, readers)
		wake(&p, readers[:crowd])
		if over := look(&p, readers[crowd:]); over != 0 {
			t.Error("the round is over, and nobody who was woken in it has looked")
		}
		if over := look(&p, readers[:crowd]); over != 1 {
			t.Errorf("the round was over %d times when all who were woken had looked, want once", over)
		}
		if left := p.left(time.Now()); left != 0 {
			t.Errorf("after a round of no time: got %v left, want none", left)
		}
	})
}

func TestFewReadersHaveNoRest(t *testing.T) {
	var p pace
	wake(&p, make([]cursor, crowd-1))
	if left := p.left(time.Now()); left > 0 {
		t.Errorf("%d readers rest for %v", crowd-1, left)
	}
}
