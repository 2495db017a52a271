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
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// floorSetting holds the floor program's settings as JSON. The floor program is this test binary, started again with it.
const floorSetting = "SECKILL_BENCH_FLOOR"

// floorSpec is what the floor program is answered.
type floorSpec struct {
	Redis, AMQP string
	Shards      int
	GoodsID     int64
	SoldOut     http.Header // of the answer that it copies
	SoldOutBody string
}

// startFloor runs the floor program until the benchmark ends, and returns where it listens and its process.
func startFloor(b *testing.B, spec floorSpec) (addr string, pid int) {
	b.Helper()
	text, err := json.Marshal(spec)
	require.NoError(b, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), floorSetting+"="+string(text)), os.Stderr
	stop, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = stop.Close(); _ = cmd.Wait() })
	_, err = fmt.Fscanln(out, &addr)
	require.NoError(b, err, "the floor program did not start")
	return addr, cmd.Process.Pid
}

// runFloor is the floor program: bare gin, the fixture's own check of the token, and nothing else that is not needed to write the
// same bytes, or to take an order down in Redis and RabbitMQ. It ends with its standard input.
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
	orderKeys, err := config.Auth{JWTSecret: secret}.OrderKeys() // as the programs derive it: the consumer takes no other's numbers
	if err != nil {
		return err
	}
	carrier, err := newCarrier(spec)
	if err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.POST("/randomPath", soldOutFloor(spec, tokens))
	e.POST("/:path/decrStock", takeFloor(spec, tokens, ordersn.NewKeys(orderKeys...), carrier))
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

func soldOutFloor(spec floorSpec, tokens *auth.Tokens) gin.HandlerFunc {
	body := []byte(spec.SoldOutBody)
	return func(c *gin.Context) {
		if _, ok := verified(c, tokens); !ok {
			return
		}
		h := c.Writer.Header()
		for name, values := range spec.SoldOut {
			h[name] = values
		}
		c.Data(http.StatusConflict, "application/json; charset=utf-8", body)
	}
}

func takeFloor(spec floorSpec, tokens *auth.Tokens, keys *ordersn.Keys, carrier *carrier) gin.HandlerFunc {
	return func(c *gin.Context) {
		actor, ok := verified(c, tokens)
		if !ok {
			return
		}
		goodsID, _ := strconv.ParseInt(c.Query("goodsId"), 10, 64)
		sn := keys.Issue(goodsID, actor.ID, time.Now()).String()
		err := carrier.carry(c.Request.Context(), reservation.OrderLine{OrderSn: sn, BuyerID: actor.ID, Quantity: 1, Epoch: 1, Name: actor.Name, Phone: actor.Phone})
		if err != nil {
			c.String(http.StatusServiceUnavailable, "%v", err)
			return
		}
		h := c.Writer.Header()
		for name, values := range spec.SoldOut {
			h[name] = values
		}
		c.Data(http.StatusAccepted, "application/json; charset=utf-8",
			[]byte(`{"code":202,"reason":"QUEUED","message":"queued","data":{"orderSn":"`+sn+`"},"requestId":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`))
	}
}
