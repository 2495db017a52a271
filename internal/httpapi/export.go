package httpapi

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/order"
)

// exportPage is how many orders an export holds in memory at once.
const exportPage = 500

// wantsCSV reports whether the client requests a file: by the field format, else by Accept.
func wantsCSV(r *request) bool {
	format := r.OneOf("format", "", "csv", "json")
	return format == "csv" ||
		format == "" && strings.HasPrefix(r.header.Get("Accept"), "text/csv")
}

// exportOrders streams a sale's orders, newest first. It is the shipping list, so names and phone
// numbers are complete. A failure breaks the connection, so that the client cannot mistake a part
// of the file for all of it.
func (a *api) exportOrders(
	r *request, goodsID int64, status order.Status, first []order.Order,
) response {
	return response{stream: func(c *gin.Context) {
		name := "orders-" + strconv.FormatInt(goodsID, 10) + ".csv"
		c.Header("Content-Type", "text/csv; charset=utf-8; header=present")
		c.Header("Content-Disposition", `attachment; filename="`+name+`"`)
		if c.Request.Method == http.MethodHead { // net/http would discard rows that MySQL has read
			c.Status(http.StatusOK)
			c.Writer.WriteHeaderNow()
			return
		}
		rc := http.NewResponseController(c.Writer)
		w := csv.NewWriter(c.Writer)
		_ = w.Write(exportHeader()) // the writer keeps its first error for w.Error
		for page := first; len(page) > 0; {
			// A file may take longer than a call, so each page gets a write deadline of its own.
			_ = rc.SetWriteDeadline(time.Now().Add(writeDeadline)) // a test's recorder has none
			for _, o := range page {
				_ = w.Write(exportRow(o, a.openPhone(o)))
			}
			if w.Flush(); w.Error() != nil || len(page) < exportPage {
				break
			}
			last := page[len(page)-1].OrderSn
			var err error
			page, err = a.Orders.OfGoods(c.Request.Context(), r.actor, goodsID, status, last,
				exportPage)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		w.Flush()
	}}
}

// exportHeader names the columns. New columns belong at the end, so that programs which read by
// position keep working.
func exportHeader() []string {
	return []string{
		"orderSn", "status", "failureReason", "goodsId", "buyerId", "quantity", "amount",
		"name", "phoneNumber", "createdAt", "payBy", "paidAt", "closedAt",
	}
}

func exportRow(o order.Order, phone string) []string {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		o.OrderSn, string(o.Status), string(o.FailureReason),
		integer(o.GoodsID), escapeFormula(o.BuyerID), integer(o.Quantity), integer(o.Amount),
		escapeFormula(o.Name), escapeFormula(phone),
		formatTime(o.CreatedAt), formatTime(o.PayBy), formatTime(o.PaidAt), formatTime(o.ClosedAt),
	}
}

// escapeFormula stops a spreadsheet from evaluating a buyer's text (OWASP, "CSV injection").
func escapeFormula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	b, _ := timestamp(t).AppendText(nil)
	return string(b)
}
