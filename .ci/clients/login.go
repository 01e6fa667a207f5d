// Logs in with pgx and says who it is: one line, `ok <role>` or `error <SQLSTATE or text>`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type login struct {
	Host           string
	Port           int
	User           string
	Password       string
	Sslmode        string
	Ca             string
	Certificate    string
	Key            string
	Negotiation    string
	ChannelBinding string `json:"channel_binding"`
}

func (l login) url() string {
	options := url.Values{"sslmode": {l.Sslmode}}
	for name, value := range map[string]string{
		"sslrootcert":     l.Ca,
		"sslcert":         l.Certificate,
		"sslkey":          l.Key,
		"sslnegotiation":  l.Negotiation,
		"channel_binding": l.ChannelBinding,
	} {
		if value != "" {
			options.Set(name, value)
		}
	}
	whole := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(l.User, l.Password),
		Host:     fmt.Sprintf("%s:%d", l.Host, l.Port),
		Path:     "postgres",
		RawQuery: options.Encode(),
	}
	return whole.String()
}

func run(l login) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	connection, err := pgx.Connect(ctx, l.url())
	if err != nil {
		return "", err
	}
	defer connection.Close(ctx)
	var role string
	var seven int64
	err = connection.QueryRow(ctx, "SELECT current_user, $1::int8", int64(7)).Scan(&role, &seven)
	if err == nil && seven != 7 {
		err = errors.New("another number")
	}
	return role, err
}

func main() {
	var l login
	if err := json.Unmarshal([]byte(os.Args[1]), &l); err != nil {
		panic(err)
	}
	role, err := run(l)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		fmt.Println("ok", role)
	case errors.As(err, &refused):
		fmt.Println("error", refused.Code, refused.Message)
	default:
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
	}
}
