"""`vanilla-transformer train-tokenizer`, from a checkout."""

from hf_vanilla_transformer.commands.train_tokenizer import main


if __name__ == "__main__":
    main()
