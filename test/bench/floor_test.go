package bench

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// floorSetting holds the floor program's settings as JSON. The floor program is this test binary,
// started again with it.
const floorSetting = "SECKILL_BENCH_FLOOR"

// floorGoods is the goods that the floor program sells. All others are sold out. No sale has such a
// small id.
const floorGoods = 1

// floorSpec has the settings of the floor program.
type floorSpec struct {
	Redis, AMQP, DSN string
	Writes           bool        // it is the writer of orders, else the HTTP server
	SoldOut          http.Header // of the API's answer that it copies
	SoldOutBody      string
	OrderBody        string      // of the API's answer to a query of an order
	Room             http.Header // of the API's answer to a query of a waiting room
	RoomBody         string
	PlaceBody        string // of the API's answer to a query of a place
}

// runFloor is the floor program. As a server it is bare gin with only the code that writes the
// API's bytes, or puts an order into Redis and RabbitMQ. As a writer it inserts the orders into
// MariaDB in batches. It ends when its standard input ends.
func runFloor(text string) int {
	var spec floorSpec
	err := json.Unmarshal([]byte(text), &spec)
	switch {
	case err == nil && spec.Writes:
		err = writeFloor(spec)
	case err == nil:
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
	orders, err := newFloorOrders(spec)
	if err != nil {
		return err
	}
	shop := &floorShop{spec: spec, tokens: tokens, orders: orders, goods: strconv.Itoa(floorGoods)}
	shop.last.Store(time.Now().UnixMicro())
	shop.macs.New = func() any { return hmac.New(sha256.New, []byte(secret)) }
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.POST("/randomPath", shop.path)
	e.GET("/orders/:orderSn", shop.answer(http.StatusOK, spec.OrderBody))
	e.POST("/:path/decrStock", shop.purchase)
	e.GET("/sales/:goodsId/waiting-room", func(c *gin.Context) {
		shop.writeAs(c, spec.Room, http.StatusOK, spec.RoomBody)
	})
	e.GET("/sales/:goodsId/waiting-room/me", shop.answer(http.StatusOK, spec.PlaceBody))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = httpapi.Server(e, "", slog.New(slog.DiscardHandler)).Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// floorShop answers. What it sells is open to any signed token, which it checks by hand.
type floorShop struct {
	spec   floorSpec
	goods  string
	tokens *auth.Tokens // checks the tokens as the API does
	macs   sync.Pool
	orders *floorOrders
	last   atomic.Int64 // number of a path or order
}

// answer checks the token as the API does, and answers with the same bytes.
func (s *floorShop) answer(status int, body string) gin.HandlerFunc {
	return func(c *gin.Context) {
		token, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		if _, err := s.tokens.Verify(token); err != nil {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		s.write(c, status, body)
	}
}

// write writes the API's headers and a body.
func (s *floorShop) write(c *gin.Context, status int, body string) {
	s.writeAs(c, s.spec.SoldOut, status, body)
}

func (s *floorShop) writeAs(c *gin.Context, header http.Header, status int, body string) {
	maps.Copy(c.Writer.Header(), header)
	c.Data(status, "application/json; charset=utf-8", []byte(body))
}

func (s *floorShop) path(c *gin.Context) {
	if c.Query("goodsId") != s.goods {
		s.answer(http.StatusConflict, s.spec.SoldOutBody)(c)
		return
	}
	if _, err := s.verify(c); err != nil {
		c.String(http.StatusUnauthorized, "%v", err)
		return
	}
	s.write(c, http.StatusOK, `{"code":200,"reason":"OK","message":"ok","data":{"randomPath":"`+
		fmt.Sprintf("%032x", s.last.Add(1))+`","expiresAt":"2026-01-01T00:00:00.000Z"},`+
		`"requestId":"`+c.GetHeader("X-Request-ID")+`"}`)
}

func (s *floorShop) purchase(c *gin.Context) {
	if c.Query("goodsId") != s.goods {
		s.answer(http.StatusConflict, s.spec.SoldOutBody)(c)
		return
	}
	line, err := s.verify(c)
	if err != nil {
		c.String(http.StatusUnauthorized, "%v", err)
		return
	}
	line.OrderSn = strconv.FormatInt(s.last.Add(1), 10)
	line.OrderSn = "FLOOR-0000000000000000000000000000"[:35-1-len(line.OrderSn)] + line.OrderSn
	if err := s.orders.take(c.Request.Context(), line); err != nil {
		c.String(http.StatusServiceUnavailable, "%v", err)
		return
	}
	s.write(c, http.StatusAccepted, `{"code":202,"reason":"QUEUED","message":"queued",`+
		`"data":{"orderSn":"`+line.OrderSn+`"},"requestId":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`)
}

var errToken = errors.New("no token of this service")

// verify checks the token's MAC and end, and returns the order of its buyer.
func (s *floorShop) verify(c *gin.Context) (line reservation.OrderLine, err error) {
	token, _ := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return line, errToken
	}
	mac := s.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write([]byte(token[:dot]))
	sum := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	s.macs.Put(mac)
	_, payload, _ := strings.Cut(token[:dot], ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || !hmac.Equal([]byte(sum), []byte(token[dot+1:])) {
		return line, errToken
	}
	var claims struct {
		Sub, Name string
		Phone     string `json:"phone_number"`
		Exp       int64
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Exp < time.Now().Unix() {
		return line, errToken
	}
	line = reservation.OrderLine{Quantity: 1, Name: claims.Name, Phone: claims.Phone}
	line.BuyerID = claims.Sub
	return line, nil
}
