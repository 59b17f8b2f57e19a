package execs

import (
	"encoding/json"
	"net/http"

	"github.com/carrelfs/carrel/execd/api"
)

// ImagesPath is where the images that were unpacked for containers are: GET lists them, and DELETE of one below it removes it.
const ImagesPath = "/images"

// RegisterImages serves them, by the Handle method of a mux to which only those come who may do everything.
func (s *Service) RegisterImages(handle func(pattern string, h http.Handler)) {
	handle("GET "+ImagesPath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list, err := s.images.Kept()
		if err != nil {
			api.HTTPError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // who has gone needs none
	}))
	handle("DELETE "+ImagesPath+"/{name}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.images.Remove(r.PathValue("name")); err != nil {
			api.HTTPError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}
