// Whether the server lets us in.

class Door {
  locked = $state(false);
}

export const door = new Door();
