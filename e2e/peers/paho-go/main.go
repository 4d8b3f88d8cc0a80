// Eclipse Paho for Go as `sub` or `pub`, MQTT 5 only; the arguments are those of every client here
// (interop.sh).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

var told = map[string]string{}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func number(key string, otherwise int) int {
	text, found := told[key]
	if !found {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func mutual() *tls.Config {
	pki, found := told["--pki"]
	if !found {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "client.pem"), filepath.Join(pki, "client.key"))
	must(err)
	ca, err := os.ReadFile(filepath.Join(pki, "ca.pem"))
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}
}

func config(came chan *paho.Publish) autopaho.ClientConfig {
	target, err := url.Parse(told["--url"])
	must(err)
	config := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{target},
		TlsCfg:                        mutual(),
		KeepAlive:                     30,
		CleanStartOnInitialConnection: true,
		OnConnectError:                func(err error) { log.Fatal(err) },
		ClientConfig: paho.ClientConfig{
			ClientID: "paho-go-" + strconv.Itoa(os.Getpid()),
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(received paho.PublishReceived) (bool, error) {
				came <- received.Packet
				return true, nil
			}},
		},
	}
	if _, found := told["--receive-maximum"]; found {
		config.ConnectPacketBuilder = func(packet *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			most := uint16(number("--receive-maximum", 0))
			packet.Properties = &paho.ConnectProperties{ReceiveMaximum: &most}
			return packet, nil
		}
	}
	if topic, found := told["--will"]; found {
		config.WillMessage = &paho.WillMessage{Topic: topic, QoS: 1, Payload: []byte("gone")}
	}
	return config
}

func subscribe(ctx context.Context, client *autopaho.ConnectionManager, came chan *paho.Publish, qos byte, count int) {
	_, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: told["--topic"], QoS: qos}}})
	must(err)
	fmt.Println("subscribed")
	for n := 0; n < count; n++ {
		message := <-came
		fmt.Printf("%s %d %t %s\n", message.Topic, message.QoS, message.Retain, message.Payload)
	}
}

func publish(ctx context.Context, client *autopaho.ConnectionManager, qos byte, count int) {
	_, retain := told["--retain"]
	for n := 0; n < count; n++ {
		body := told["--payload"]
		if count > 1 {
			body += "-" + strconv.Itoa(n)
		}
		_, err := client.Publish(ctx, &paho.Publish{Topic: told["--topic"], QoS: qos, Retain: retain, Payload: []byte(body)})
		must(err)
	}
	fmt.Println("accepted", count)
}

func main() {
	for at := 2; at < len(os.Args); at += 2 {
		told[os.Args[at]] = os.Args[at+1]
	}
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	count, qos := number("--count", 1), byte(number("--qos", 0))
	came := make(chan *paho.Publish, count)
	client, err := autopaho.NewConnection(ctx, config(came))
	must(err)
	must(client.AwaitConnection(ctx))
	if os.Args[1] == "sub" {
		subscribe(ctx, client, came, qos, count)
	} else {
		publish(ctx, client, qos, count)
	}
	must(client.Disconnect(ctx))
}
