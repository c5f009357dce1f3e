package script

import (
	"context"
	"strconv"
)

// spot is where a step stands in a run: its path, which never changes, and the round
// of the repetition around it.
type spot struct {
	path  string
	round int
}

func (s spot) into(part string) spot {
	if s.path != "" {
		part = s.path + "/" + part
	}
	return spot{part, s.round}
}

func (s spot) step(i int) spot { return s.into(strconv.Itoa(i)) }

// action is what a step does. It returns an [ended] when the run is to end, and else
// an error only when nothing more can be done.
type action interface {
	perform(ctx context.Context, sc *scene, at spot) error
}

// sequence is a list of steps.
type sequence []action

// perform performs the steps one after another.
func (s sequence) perform(ctx context.Context, sc *scene, at spot) error {
	for i, act := range s {
		if err := ctx.Err(); err != nil {
			return err
		}
		if sc.play.performed.Add(1) > maxPerformed {
			return failure("script_endless", "The script performs too many steps.")
		}
		if err := act.perform(ctx, sc, at.step(i)); err != nil {
			return err
		}
	}
	return nil
}

// maxPerformed bounds what nested repetitions can make of a small file.
const maxPerformed = 100_000

// follow performs the branch of the first result that has one, or the one for all
// other results.
func (b branches) follow(ctx context.Context, sc *scene, at spot, results ...string) error {
	for _, word := range append(results, otherwise) {
		if steps, ok := b[word]; ok {
			return steps.perform(ctx, sc, at.into(word))
		}
	}
	return nil
}
