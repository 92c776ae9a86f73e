// All at once.
void launch() {}
