package rabbit

import (
	"testing"
	"testing/synctest"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestConfirmChannel_RecordsTheReturnAfterOneThatWasGivenUp delivers a return to the first listener
// alone, as the library does for a process that is stopped in between.
func TestConfirmChannel_RecordsTheReturnAfterOneThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &confirmChannel{returned: make(map[string]string)}
		first, second := make(chan amqp.Return), make(chan amqp.Return)
		go cc.recordReturns(first, second, make(chan struct{}, 1))
		first <- amqp.Return{MessageId: "1", ReplyText: "NO_ROUTE"}
		first <- amqp.Return{MessageId: "2", ReplyText: "NO_ROUTE"}
		second <- amqp.Return{MessageId: "2"}
		require.Equal(t, map[string]string{"1": "NO_ROUTE", "2": "NO_ROUTE"}, cc.returned)
		close(second)
		close(first)
	})
}
