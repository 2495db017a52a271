package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// floorSetting holds the floor program's settings as JSON. The floor program is this test binary,
// started again with it.
const floorSetting = "SECKILL_BENCH_FLOOR"

// shards is the default of SECKILL_ORDER_SHARDS.
const shards = 4

// floorSpec has the settings of the floor program.
type floorSpec struct {
	Redis, AMQP string
	GoodsID     int64
	SoldOut     http.Header // of the answer that it copies
	SoldOutBody string
}

// floor is the floor program: its address, its process and the goods that it sells.
type floor struct {
	addr  string
	pid   int
	goods string
}

// startFloor runs the floor program until the benchmark ends. It copies the answer of a sold-out
// sale.
func (f *fixture) startFloor(soldOut string) floor {
	f.b.Helper()
	made := floor{goods: f.sale(endless)}
	header, body := f.answerOf(soldOut)
	text := must.Get(json.Marshal(floorSpec{
		Redis: f.Redis.Addr(), AMQP: f.AMQP, GoodsID: installation.Number(f.b, made.goods),
		SoldOut: header, SoldOutBody: body,
	}))(f.b)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), floorSetting+"="+string(text)), os.Stderr
	stop := must.Get(cmd.StdinPipe())(f.b)
	out := must.Get(cmd.StdoutPipe())(f.b)
	require.NoError(f.b, cmd.Start())
	f.b.Cleanup(func() { _ = stop.Close(); _ = cmd.Wait() })
	must.Get(fmt.Fscanln(out, &made.addr))(f.b, "the floor program did not start")
	made.pid = cmd.Process.Pid
	return made
}

// runFloor is the floor program: bare gin and the API's check of the token. It has only the code
// that writes the same bytes, or puts an order into Redis and RabbitMQ. It ends when its standard
// input ends.
func runFloor(text string) int {
	var spec floorSpec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		err = serveFloor(spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		return 1
	}
	return 0
}

func serveFloor(spec floorSpec) error {
	tokens, err := auth.New([]byte(secret), 40_000, time.Now)
	if err != nil {
		return err
	}
	// The consumer accepts only order numbers of the programs' own key.
	orderKeys, err := config.Auth{JWTSecret: secret}.OrderKeys()
	if err != nil {
		return err
	}
	orders, err := newFloorOrders(spec)
	if err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	answer := func(status int) gin.HandlerFunc {
		return func(c *gin.Context) {
			if _, ok := verified(c, tokens); ok {
				spec.answer(c, status, spec.SoldOutBody)
			}
		}
	}
	e.POST("/randomPath", answer(http.StatusConflict))
	e.GET("/orders/:orderSn", answer(http.StatusOK))
	e.POST("/:path/decrStock", takeFloor(spec, tokens, ordersn.NewKeys(orderKeys...), orders))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = httpapi.Server(e, "", slog.New(slog.DiscardHandler)).Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func verified(c *gin.Context, tokens *auth.Tokens) (seckill.Actor, bool) {
	token, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	actor, err := tokens.Verify(token)
	if err != nil {
		c.AbortWithStatus(http.StatusUnauthorized)
	}
	return actor, err == nil
}

// answer writes the API's headers and a body.
func (s floorSpec) answer(c *gin.Context, status int, body string) {
	h := c.Writer.Header()
	for name, values := range s.SoldOut {
		h[name] = values
	}
	c.Data(status, "application/json; charset=utf-8", []byte(body))
}

func takeFloor(
	spec floorSpec, tokens *auth.Tokens, keys *ordersn.Keys, orders *floorOrders,
) gin.HandlerFunc {
	return func(c *gin.Context) {
		actor, ok := verified(c, tokens)
		if !ok {
			return
		}
		goodsID, _ := strconv.ParseInt(c.Query("goodsId"), 10, 64)
		sn := keys.Issue(goodsID, actor.ID, time.Now()).String()
		err := orders.take(c.Request.Context(), reservation.OrderLine{
			OrderSn: sn, BuyerID: actor.ID, Quantity: 1, Epoch: 1, Name: actor.Name,
			Phone: actor.Phone,
		})
		if err != nil {
			c.String(http.StatusServiceUnavailable, "%v", err)
			return
		}
		spec.answer(c, http.StatusAccepted, `{"code":202,"reason":"QUEUED","message":"queued",`+
			`"data":{"orderSn":"`+sn+`"},"requestId":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`)
	}
}
