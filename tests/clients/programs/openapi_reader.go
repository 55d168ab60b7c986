// Reads as many posts of an author from a stream as it is told, by a client that is made from the OpenAPI document,
// and prints their texts.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strconv"
)

func main() {
	address, token, author := os.Args[1], os.Args[2], os.Args[3]
	count, _ := strconv.Atoi(os.Args[4])
	client, err := NewClient(address, WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Accept", "application/x-ndjson")
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	since := "-15m"
	asked := StreamFilterStreamGetParams{Follow: &author, Since: &since}
	answer, err := client.StreamFilterStreamGet(context.Background(), &asked)
	if err != nil || answer.StatusCode != 200 {
		log.Fatal(answer, err)
	}
	read := []string{}
	for lines := bufio.NewScanner(answer.Body); len(read) < count && lines.Scan(); {
		var message StreamMessage
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			log.Fatal(err)
		}
		value, err := message.ValueByDiscriminator()
		if err != nil {
			log.Fatal(err)
		}
		switch typed := value.(type) {
		case Post:
			read = append(read, typed.Status.Message)
		case Hello, Delete, Heartbeat:
		default:
			log.Fatalf("not expected: %T", typed)
		}
	}
	json.NewEncoder(os.Stdout).Encode(map[string][]string{"read": read})
}
