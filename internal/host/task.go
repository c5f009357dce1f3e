package host

import (
	"context"
	"errors"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// task is one command on its way through an owner.
type task struct {
	command   decide.Command
	actor     facts.Actor
	commandID string
	inputID   string
	// keys name the stored answers of a command that is idempotent, hash its content.
	keys []journal.Key
	hash []byte
	// agent says that an agent records something, which the host need not believe.
	agent bool
	// wait gets the decision of interrupt, which the command asks or waits for.
	interrupt string
	wait      waiter
	// claim is what an executor says, which is judged before the command is decided.
	claim *claim
	// finished gets the end of toolCall, which the command starts or waits for.
	toolCall string
	finished chan *narad.ToolCallFinished
	// resumed is closed when the run goes on whose pause has refused the command.
	resumed chan struct{}
	// refusal answers a command that was not given before and cannot be performed; without a
	// status it can.
	refusal decide.Answer
	// remove, not a command, deletes the session.
	remove bool
	// shut are, for remove, the sessions that take nothing now: what is for them goes with it.
	shut  []string
	reply chan reply // has room for the one reply
}

type reply struct {
	answer decide.Answer
	err    error
}

// errOwnerEnded says that the owner ended before it took the task.
var errOwnerEnded = errors.New("the owner ended")

// do hands a task to the owner's mailbox and waits for its answer.
func (o *owner) do(ctx context.Context, t *task) (decide.Answer, error) {
	select {
	case o.mailbox <- t:
	case <-o.ended:
		return decide.Answer{}, errOwnerEnded
	default:
		if isDone(o.ended) {
			return decide.Answer{}, errOwnerEnded
		}
		return decide.Answer{}, ErrOverloaded
	}
	return o.await(ctx, t)
}

// record hands an agent's record to the owner; commands of clients go before it.
func (o *owner) record(ctx context.Context, t *task) (decide.Answer, error) {
	if err := ctx.Err(); err != nil {
		return decide.Answer{}, err
	}
	select {
	case o.records <- t:
	case <-o.ended:
		return decide.Answer{}, errOwnerEnded
	case <-ctx.Done():
		return decide.Answer{}, ctx.Err()
	}
	return o.await(context.WithoutCancel(ctx), t) // what was taken is recorded
}

// await waits for the answer to a task that was handed over. A task that lies in the
// mailbox of an owner that has ended was not taken, and never will be.
func (o *owner) await(ctx context.Context, t *task) (decide.Answer, error) {
	select {
	case r := <-t.reply:
		return r.answer, r.err
	case <-ctx.Done():
		return decide.Answer{}, ctx.Err()
	case <-o.ended:
	}
	select { // the owner may have answered as it ended
	case r := <-t.reply:
		return r.answer, r.err
	default:
		return decide.Answer{}, errOwnerEnded
	}
}
